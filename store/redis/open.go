package redis

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns a store on a client of its own, which Close closes. Redis need not be reachable yet. The URL says how
// to reach it:
//
//	redis://user:password@host:6379/0            one server
//	rediss://host:6379/0                         the same over TLS
//	unix:///run/redis/redis.sock?db=0            the same over a socket
//	redis+cluster://host:7000?addr=host:7001     a cluster, by some of its nodes
//	redis+sentinel://host:26379/0?master_name=m  the master that sentinels name, addr= for more of them
//
// Queries set options of the client, as in go-redis: pool_size=20. The client is set up for short answers whatever
// they say: no retries, one attempt to connect, deadlines from o.Timeout. An error never quotes the URL, which may hold a password.
func Open(rawURL string, o Options) (*Store, error) {
	if strings.ContainsAny(o.Prefix, "{}") {
		return nil, fmt.Errorf("redis: Prefix %q: want no brace", o.Prefix)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	client, err := open(rawURL, o.Timeout)
	if err != nil {
		return nil, err
	}
	s := New(client, o)
	s.owned = true
	return s, nil
}

func open(rawURL string, timeout time.Duration) (goredis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return nil, errors.New("redis: URL has no scheme: want redis://, rediss://, unix://, redis+cluster:// or redis+sentinel://")
	}
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // proxies close on what they don't know
	switch scheme {
	case "redis", "rediss", "unix":
		o, err := goredis.ParseURL(rawURL)
		if err != nil {
			return nil, badURL(rawURL, err)
		}
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
		o.DisableIdentity, o.MaintNotificationsConfig = true, quiet
		o.Dialer = late(goredis.NewDialer(o), timeout, o.TLSConfig == nil)
		return goredis.NewClient(o), nil
	case "redis+cluster", "rediss+cluster":
		o, err := goredis.ParseClusterURL(strings.TrimSuffix(scheme, "+cluster") + "://" + rest)
		if err != nil {
			return nil, badURL(rawURL, err)
		}
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
		o.DisableIdentity, o.MaintNotificationsConfig = true, quiet
		o.Dialer = late(goredis.NewDialer(&goredis.Options{DialTimeout: timeout, TLSConfig: o.TLSConfig}), timeout, o.TLSConfig == nil)
		return goredis.NewClusterClient(o), nil
	case "redis+sentinel", "rediss+sentinel":
		o, err := goredis.ParseFailoverURL(strings.TrimSuffix(scheme, "+sentinel") + "://" + rest)
		if err != nil {
			return nil, badURL(rawURL, err)
		}
		if o.MasterName == "" {
			return nil, errors.New("redis: URL: want master_name=, the name by which sentinels know the master")
		}
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout
		o.DisableIdentity = true
		return goredis.NewFailoverClient(o), nil
	}
	return nil, fmt.Errorf("redis: URL's scheme %q: want redis, rediss, unix, redis+cluster or redis+sentinel", scheme)
}

// badURL tells what is wrong with a URL without the URL: its parts may be secrets.
func badURL(rawURL string, err error) error {
	var parse *url.Error
	if errors.As(err, &parse) {
		err = parse.Err
	}
	text := err.Error()
	if u, e := url.Parse(rawURL); e == nil && u.User != nil {
		if password, ok := u.User.Password(); ok && password != "" {
			text = strings.ReplaceAll(text, password, "***")
		}
	} else if e != nil {
		text = "it does not parse" // its parts can't be told from a password's
	}
	return fmt.Errorf("redis: URL: %s", text)
}

package service

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

// Health is what a check of [Diagnose] comes to.
type Health string

// The healths of a Finding.
const (
	HealthOK   Health = "ok"
	HealthWarn Health = "warn" // limits hold, but not in every case
	HealthFail Health = "fail" // limits do not hold, or are decided without Redis
)

// Finding is what one check has found.
type Finding struct {
	Check  string // a word, such as reach
	Health Health
	Found  string
	Advice string // what to do; "": nothing
}

// Diagnose looks whether the Redis of the rules is fit for them: whether it can be reached, how fast it is, and whether its
// version, the user's rights, its clock, its eviction, its slots and its replicas will do. It tells report of each finding
// as it comes. It writes to a few keys of its own under the rules' prefix, and deletes them. It takes a few seconds at most.
//
// Where the user may not ask for INFO, what that would tell is a warning: run it as a user who may.
func Diagnose(ctx context.Context, rules *policy.Rules, report func(Finding)) {
	c := rules.Config()
	d := &doctor{rules: rules, timeout: c.Store.Timeout, report: report}
	if c.Store.Redis == "" {
		d.ok("store", "in process: there is no Redis to look at; each process has the whole limit")
		return
	}
	address, from, err := resolve(c.Store.Redis)
	if err != nil {
		d.fail("store", err.Error(), "set it in the environment that the service runs in")
		return
	}
	d.from = from
	d.client, err = redis.Client(address, max(d.timeout, patience))
	if err != nil {
		d.fail("store", fmt.Sprintf("%s: %v", from, err), "correct the URL")
		return
	}
	defer d.client.Close()
	d.store = redis.New(d.client, direct(c, c.Store.Prefix+":doctor")) // beside the rules' keys, where the user's rights hold, too
	defer d.store.Close()
	if d.reach(ctx) {
		d.examine(ctx, c.Failover.Instances == 0)
	}
}

// doctor is one run of Diagnose.
type doctor struct {
	rules   *policy.Rules
	timeout time.Duration // of a decision
	from    string        // where the URL came from
	client  goredis.UniversalClient
	node    *goredis.Client // the server that has the doctor's keys; nil: not known
	store   *redis.Store    // of the doctor's keys
	report  func(Finding)

	version server
	info    map[string]string // of INFO; nil: the user may not ask
}

func (d *doctor) ok(check, format string, args ...any) {
	d.report(Finding{check, HealthOK, fmt.Sprintf(format, args...), ""})
}

func (d *doctor) warn(check, found, advice string) {
	d.report(Finding{check, HealthWarn, found, advice})
}

func (d *doctor) fail(check, found, advice string) {
	d.report(Finding{check, HealthFail, found, advice})
}

// examine makes every check but reach.
func (d *doctor) examine(ctx context.Context, beats bool) {
	d.asks(ctx)
	d.checkVersion()
	d.rights(ctx, beats)
	d.time(ctx)
	d.roundTrip(ctx)
	d.eviction(ctx)
	d.slots(ctx)
	d.replicas()
	d.scriptTime(ctx)
}

// reach tells whether the server answers at all. A user who may not PING has reached it.
func (d *doctor) reach(ctx context.Context) bool {
	start := time.Now()
	err := d.client.Do(ctx, "ping").Err()
	took := time.Since(start).Round(10 * time.Microsecond)
	switch {
	case err == nil || goredis.HasErrorPrefix(err, "NOPERM"):
		d.ok("reach", "%s: answers, connecting included after %v", d.from, took)
		return true
	case goredis.IsAuthError(err):
		d.fail("reach", fmt.Sprintf("%s: %v", d.from, err), "correct user and password in the URL")
	case strings.Contains(err.Error(), "cluster support disabled"):
		d.fail("reach", fmt.Sprintf("%s: %v", d.from, err), "it is no cluster: begin the URL with redis:// or rediss://")
	default:
		d.fail("reach", fmt.Sprintf("%s: %v after %v", d.from, err, took), "every rule decides as its on_outage says: see that the server runs and that address, port, TLS and firewall are right")
	}
	return false
}

// ask is a question about a subject of the doctor's own.
func (d *doctor) ask(st sluice.Strategy, subject string) sluice.Ask {
	return sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "doctor", Subject: subject}, N: 1}
}

// strategies are those of the rules: one of each algorithm.
func (d *doctor) strategies() []sluice.Strategy {
	var list []sluice.Strategy
	seen := map[string]bool{}
	for _, rule := range d.rules.All() {
		for _, l := range rule.Limits {
			if !seen[l.Algorithm] {
				seen[l.Algorithm] = true
				list = append(list, l.Strategy)
			}
		}
	}
	return list
}

// subject is one that nobody has.
func subject() string { return "doctor-" + rand.Text() }

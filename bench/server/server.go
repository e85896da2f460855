// Package server runs private redis-server processes for measurements, and reads what they tell of themselves.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/sluice-go/sluice/internal/child"
)

const (
	startTime = 10 * time.Second     // for a server to answer
	pollTime  = 5 * time.Millisecond // between two looks at a server that starts
)

// Server is a redis-server on a loopback port, with nothing on disk.
type Server struct {
	Addr string          // host:port
	PID  int             // of its process
	Ask  *goredis.Client // for questions about it, not for what is measured

	proc *child.Process
	dir  string
}

// Start runs a server and returns once it answers. extra are further arguments, such as "--cluster-enabled", "yes".
// The caller calls Stop; on Linux the server also ends with this process.
func Start(ctx context.Context, extra ...string) (*Server, error) {
	binary := os.Getenv("REDIS_SERVER")
	if binary == "" {
		binary = "redis-server"
	}
	path, err := exec.LookPath(binary)
	if err != nil {
		return nil, fmt.Errorf("server: %w: install it (Debian: apt-get install redis-server)", err)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, fmt.Errorf("server: no free port: %w", err)
	}
	dir, err := os.MkdirTemp("", "sluice-bench")
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, extra...)...)
	proc, err := child.Start(cmd)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("server: %s: %w", path, err)
	}
	s := &Server{Addr: addr, PID: cmd.Process.Pid, proc: proc, dir: dir, Ask: goredis.NewClient(&goredis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1, PoolSize: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})}
	if err := s.wait(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// wait returns once the process that was started, and no other that took its port, answers.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		info, err := s.greet(ctx)
		switch {
		case err == nil && info["process_id"] == strconv.Itoa(s.PID):
			return nil
		case s.proc.Ended():
			return errors.New("server: redis-server ended at once")
		case ctx.Err() != nil:
			return fmt.Errorf("server: no answer on %s within %v: %w", s.Addr, startTime, err)
		}
		time.Sleep(pollTime)
	}
}

// greet asks the server who it is, once it listens: the client complains of connections that are refused.
func (s *Server) greet(ctx context.Context) (map[string]string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, startTime)
	if err != nil {
		return nil, err
	}
	_ = conn.Close()
	return s.info(ctx, "server")
}

// Stop ends the server. It may be called twice.
func (s *Server) Stop() {
	_ = s.Ask.Close()
	s.proc.Kill()
	_ = os.RemoveAll(s.dir)
}

// freeAddr returns a loopback address that nobody listens on, nor on the port 10,000 above, which a cluster's node needs.
func freeAddr() (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		addr := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		if addr.Port+busOffset > 65535 {
			continue
		}
		bus, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(addr.Port+busOffset)))
		if err == nil {
			_ = bus.Close()
			return addr.String(), nil
		}
	}
}

const busOffset = 10_000

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/child"
)

const (
	realServer = "redis-server" // the default where it is in PATH
	miniServer = "miniredis"    // the default where it is not

	startTime = 10 * time.Second     // for a server to answer
	pollTime  = 5 * time.Millisecond // between two looks at a server that starts
)

// server is a Redis of this process's own, empty, that keeps nothing on disk.
type server struct {
	what          string // "redis-server 7.0.15" or "miniredis"
	network, addr string
	proc          *child.Process // nil: it runs in this process
	stop          func()         // ends it and waits for that; once
}

// startServer runs what name says: "miniredis", or a program as redis-server is. "" is redis-server if there is one in
// PATH, else miniredis. It must be stopped.
func startServer(ctx context.Context, name string) (*server, error) {
	if name == "" {
		name = realServer
		if _, err := exec.LookPath(name); err != nil {
			name = miniServer
		}
	}
	if name == miniServer {
		return startMini()
	}
	return startReal(ctx, name)
}

func startMini() (*server, error) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("lab: miniredis: %w", err)
	}
	return &server{what: miniServer, network: "tcp", addr: m.Addr(), stop: m.Close}, nil
}

// startReal runs a server on a socket in a directory of its own, where nobody else takes its place or finds it.
func startReal(ctx context.Context, name string) (*server, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("lab: server: %w", err)
	}
	dir, err := os.MkdirTemp("", "sluice-lab")
	if err != nil {
		return nil, fmt.Errorf("lab: server: %w", err)
	}
	s := &server{network: "unix", addr: filepath.Join(dir, "redis.sock")}
	cmd := exec.Command(path, "--port", "0", "--unixsocket", s.addr, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	var log bytes.Buffer // read only once the process has ended
	cmd.Stdout, cmd.Stderr = &log, &log
	if s.proc, err = child.Start(cmd); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("lab: server: %w", err)
	}
	s.stop = func() {
		s.proc.Kill()
		_ = os.RemoveAll(dir)
	}
	version, err := s.await(ctx)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("lab: %s: %w: %s", filepath.Base(path), err, bytes.TrimSpace(log.Bytes()))
	}
	s.what = filepath.Base(path) + " " + version
	return s, nil
}

// await returns the server's version as soon as it answers.
func (s *server) await(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for !s.listens() {
		switch {
		case s.proc.Ended():
			return "", errors.New("ended at once")
		case ctx.Err() != nil:
			return "", fmt.Errorf("no answer: %w", ctx.Err())
		}
		time.Sleep(pollTime)
	}
	client := goredis.NewClient(&goredis.Options{Network: s.network, Addr: s.addr, ContextTimeoutEnabled: true})
	defer client.Close()
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("no answer: %w", err)
	}
	return info["Server"]["redis_version"], nil
}

func (s *server) listens() bool {
	c, err := net.Dial(s.network, s.addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// check is an error if the server has ended by itself.
func (s *server) check() error {
	if s.proc != nil && s.proc.Ended() {
		return fmt.Errorf("lab: %s ended during the run", s.what)
	}
	return nil
}

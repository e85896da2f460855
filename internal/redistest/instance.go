package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/child"
)

const (
	startTime = 10 * time.Second     // for a server to answer
	pollTime  = 5 * time.Millisecond // between two looks at a server that starts
	busOffset = 10_000               // a cluster node's bus port is its port and this
)

// errTaken means that another process took the port before redis-server did.
var errTaken = errors.New("address already in use")

// instance is one redis-server: an address, a directory, and a process that may come and go.
type instance struct {
	addr   string
	binary string
	dir    string
	extra  []string

	mu   sync.Mutex
	proc *child.Process
}

// launch starts a server on a free port of its own. The caller calls remove.
func launch(extra []string) (*instance, error) {
	binary, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, err
	}
	s := &instance{binary: binary, dir: dir, extra: extra}
	err = errTaken
	for try := 0; try < 10 && errors.Is(err, errTaken); try++ {
		if s.addr, err = freeAddr(slices.Contains(extra, "--cluster-enabled")); err == nil {
			err = s.start()
		}
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// find returns the server's binary.
func find() (string, error) {
	name := os.Getenv("REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: these tests need a real server and don't skip without one: `make test` installs it (Debian: apt-get install redis-server)", err)
	}
	return path, nil
}

// freeAddr returns a loopback address that nobody listens on, for a cluster node together with its bus port. Another
// process may take it before it is used.
func freeAddr(cluster bool) (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		addr := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		if !cluster {
			return addr.String(), nil
		}
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

// start runs the server on its address and returns once it answers. It is errTaken where the port was taken.
func (s *instance) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, "log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, s.extra...)
	cmd := exec.Command(s.binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := child.Start(cmd)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(startTime); ; time.Sleep(pollTime) {
		switch {
		case answers(s.addr, cmd.Process.Pid):
			s.proc = proc
			return nil
		case proc.Ended():
			text, _ := os.ReadFile(path)
			if strings.Contains(string(text), "ddress already in use") {
				return errTaken
			}
			return fmt.Errorf("%s %s: ended at once: %s", s.binary, strings.Join(s.extra, " "), text)
		case time.Now().After(deadline):
			proc.Kill()
			text, _ := os.ReadFile(path)
			return fmt.Errorf("%s: no answer on %s within %v: %s", s.binary, s.addr, startTime, text)
		}
	}
}

// answers tells whether the process pid, and no other that took its port, answers at addr. One that asks for a
// password answers, too.
func answers(addr string, pid int) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "INFO server\r\n"); err != nil {
		return false
	}
	r := bufio.NewReader(c)
	head, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(head, "$") {
		return strings.HasPrefix(head, "-NOAUTH")
	}
	n, err := strconv.Atoi(strings.TrimSpace(head[1:]))
	if err != nil {
		return false
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return false
	}
	return parseInfo(string(text))["process_id"] == strconv.Itoa(pid)
}

// kill ends the process, if it runs.
func (s *instance) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.Kill()
		s.proc = nil
	}
}

// restart ends the process and starts another on the same address.
func (s *instance) restart() error {
	s.kill()
	err := s.start()
	for deadline := time.Now().Add(startTime); errors.Is(err, errTaken) && time.Now().Before(deadline); {
		time.Sleep(pollTime)
		err = s.start()
	}
	return err
}

// signal calls f on the process that runs.
func (s *instance) signal(f func(*child.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return errors.New("the server was killed")
	}
	return f(s.proc)
}

// remove ends the process and deletes the directory.
func (s *instance) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

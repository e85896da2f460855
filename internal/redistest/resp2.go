package redistest

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// Resp2Proxy speaks RESP 2 to its clients and knows few commands, as twemproxy, codis and their like.
type Resp2Proxy struct {
	Addr string // host:port on loopback

	relay   relay
	tb      testing.TB
	refuses map[string]bool

	mu      sync.Mutex
	refused map[string]int64
}

// StartResp2Proxy forwards commands to s, one by one, and answers HELLO, every CLIENT subcommand, and the commands in
// refuse itself: with an unknown command error. It closes when t ends.
func StartResp2Proxy(t testing.TB, s *Server, refuse ...string) *Resp2Proxy {
	t.Helper()
	p := &Resp2Proxy{tb: t, relay: relay{upstream: s.Addr}, refuses: map[string]bool{}, refused: map[string]int64{}}
	for _, name := range append(refuse, "hello", "client") {
		p.refuses[strings.ToLower(name)] = true
	}
	p.relay.serve = p.serve
	if err := p.relay.open(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	p.Addr = p.relay.addr
	t.Cleanup(p.Close)
	return p
}

// Client returns a client of the proxy that is closed when the test ends. Each edit may change its options.
func (p *Resp2Proxy) Client(edit ...func(*goredis.Options)) *goredis.Client {
	return newClient(p.tb, p.Addr, edit...)
}

// Refused returns how often each command was refused, by its lower-case name.
func (p *Resp2Proxy) Refused() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := map[string]int64{}
	for name, n := range p.refused {
		calls[name] = n
	}
	return calls
}

// Close breaks all connections and leaves no goroutine. It may be called twice.
func (p *Resp2Proxy) Close() { p.relay.shut() }

// pipelined is how many commands of one connection may be under way.
const pipelined = 1024

// serve answers in the order of the commands, whoever answers: answers holds a refusal for each command, or "" where
// the next reply of the server is the answer.
func (p *Resp2Proxy) serve(l *link) {
	if !p.relay.dial(l) {
		return
	}
	answers := make(chan string, pipelined)
	var both sync.WaitGroup
	both.Go(func() {
		defer l.close(false)
		defer close(answers)
		p.commands(l, answers)
	})
	both.Go(func() {
		defer l.close(false)
		from := bufio.NewReader(l.server)
		for answer := range answers {
			reply := []byte(answer)
			if answer == "" {
				var err error
				if reply, err = readReply(from, nil); err != nil {
					return
				}
			}
			if _, err := l.client.Write(reply); err != nil {
				return
			}
		}
	})
	both.Wait()
}

func (p *Resp2Proxy) commands(l *link, answers chan<- string) {
	from := bufio.NewReader(l.client)
	for {
		raw, name, err := readCommand(from)
		if err != nil {
			return
		}
		if name == "" { // Redis does not answer an empty command
			continue
		}
		answer := ""
		if p.refuses[name] {
			answer = "-ERR unknown command '" + name + "'\r\n"
			p.mu.Lock()
			p.refused[name]++
			p.mu.Unlock()
		}
		select {
		case answers <- answer:
		case <-l.done:
			return
		}
		if answer == "" {
			if _, err := l.server.Write(raw); err != nil {
				return
			}
		}
	}
}

var errProtocol = errors.New("not RESP 2")

// mostBulk is Redis's bound on one string, in bytes.
const mostBulk = 512 << 20

// readCommand reads one command, an array of bulk strings or a line of words, and returns its bytes and its
// lower-case name.
func readCommand(r *bufio.Reader) (raw []byte, name string, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	if line[0] != '*' {
		if words := strings.Fields(string(line)); len(words) > 0 {
			name = strings.ToLower(words[0])
		}
		return line, name, nil
	}
	n, err := length(line)
	raw = line
	for i := 0; i < n && err == nil; i++ {
		start := len(raw)
		if raw, err = readReply(r, raw); err == nil && raw[start] != '$' {
			err = errProtocol
		}
		if err == nil && i == 0 {
			_, word, _ := strings.Cut(string(raw[start:]), "\r\n")
			name = strings.ToLower(strings.TrimSuffix(word, "\r\n"))
		}
	}
	return raw, name, err
}

// readReply appends the bytes of one value to raw: a line, a bulk string or an array of values.
func readReply(r *bufio.Reader, raw []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	raw = append(raw, line...)
	switch line[0] {
	case '+', '-', ':':
		return raw, nil
	case '$':
		n, err := length(line)
		if err != nil || n < 0 {
			return raw, err
		}
		start := len(raw)
		raw = append(raw, make([]byte, n+2)...)
		_, err = io.ReadFull(r, raw[start:])
		return raw, err
	case '*':
		n, err := length(line)
		for i := 0; i < n && err == nil; i++ {
			raw, err = readReply(r, raw)
		}
		return raw, err
	}
	return nil, errProtocol
}

// length reads the number in the head of a bulk string or an array; -1 is null.
func length(line []byte) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	if err != nil || n < -1 || n > mostBulk {
		return 0, errProtocol
	}
	return n, nil
}

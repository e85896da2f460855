package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// raw is a connection to a server, as a client with habits of its own has it.
type raw struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, url string) raw {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return raw{conn, bufio.NewReader(conn)}
}

// write sends a part of a request, or all of it.
func (r raw) write(t *testing.T, request string) {
	t.Helper()
	if _, err := io.WriteString(r, request); err != nil {
		t.Fatal(err)
	}
}

// answer reads the next answer and its body. One that does not come has status 0.
func (r raw) answer(t *testing.T) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(r.answers, nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return &http.Response{}, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("status %d: %v", resp.StatusCode, err)
	}
	return resp, string(body)
}

// send is write and answer.
func (r raw) send(t *testing.T, request string) (*http.Response, string) {
	t.Helper()
	r.write(t, request)
	return r.answer(t)
}

const refusal = `
rules:
  - {name: small, match: /small, limits: [{algorithm: fixed_window, limit: 1/d, subject: global}]}
  - name: large
    match: /large
    denial: {status: 403, body: "BODY"}
    limits: [{algorithm: fixed_window, limit: 1/d, subject: global}]
  - {name: last, match: /last, limits: [{algorithm: fixed_window, limit: 1000/d, subject: ip}]}
`

// Who never sends the body that it announced gets its answer all the same, and its connection is closed: such
// connections would be kept for ever, by clients who are refused.
func TestServeUnreadBody(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	rules := write(t, strings.Replace(refusal, "BODY", strings.Repeat("no ", 3000), 1)) // more than net/http keeps back
	echoes, _ := served(t, rules, "--check-path", "/check")
	broken, _ := served(t, rules, "--upstream", away.URL)
	for _, path := range []string{"/small", "/large"} {
		if resp, _ := get(t, echoes+path); resp.StatusCode != 200 {
			t.Errorf("%s: status %d, want 200", path, resp.StatusCode)
		}
	}
	type asked struct {
		what   string
		conn   raw
		status int
	}
	var all []asked // at once, since each of them takes its time
	for _, c := range []struct {
		what, url, path string
		status          int
	}{
		{"refused", echoes, "/small", 429},
		{"refused in many words", echoes, "/large", 403},
		{"echoed", echoes, "/last", 200},
		{"echoed in many words", echoes, "/last?" + strings.Repeat("x", 9000), 200},
		{"a check", echoes, "/check", 403},
		{"without an upstream", broken, "/last", 502},
	} {
		for _, length := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
			conn := dial(t, c.url)
			conn.write(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n", c.path, length))
			all = append(all, asked{c.what + ", " + length, conn, c.status})
		}
	}
	for _, a := range all {
		if resp, _ := a.conn.answer(t); resp.StatusCode != a.status || !resp.Close {
			t.Errorf("%s: status %d, close %v: want %d, and the connection closed", a.what, resp.StatusCode, resp.Close, a.status)
		}
	}
}

// A connection goes on after a refusal, with a body and without one.
func TestServeRefusedKeepsConnection(t *testing.T) {
	url, _ := served(t, write(t, refusal))
	conn := dial(t, url)
	for i, request := range []string{
		"GET /small HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /small HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"POST /last HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"GET /last HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		want := 429
		if i == 0 || i > 3 {
			want = 200
		}
		if resp, _ := conn.send(t, request); resp.StatusCode != want || resp.Close {
			t.Errorf("%q: status %d, close %v: want %d, and the connection kept", request, resp.StatusCode, resp.Close, want)
		}
	}
}

// A request that goes to the upstream may send its body as slowly as it likes.
func TestServeSlowUpload(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v", body, err)
	}))
	defer upstream.Close()
	url, _ := served(t, write(t, refusal), "--upstream", upstream.URL)
	conn := dial(t, url)
	conn.write(t, "POST /last HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
	time.Sleep(7 * time.Second) // longer than a body is waited for that nobody reads
	if resp, body := conn.send(t, "world"); resp.StatusCode != 200 || body != "helloworld <nil>" || resp.Close {
		t.Errorf("status %d, %q: want 200, the whole body, and the connection kept", resp.StatusCode, body)
	}
	if resp, _ := conn.send(t, "GET /last HTTP/1.1\r\nHost: a\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("the next request: status %d, want 200", resp.StatusCode)
	}
}

// A body that is none is the client's fault, and not the upstream's.
func TestServeMalformedUpload(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer upstream.Close()
	url, _ := served(t, write(t, refusal), "--upstream", upstream.URL)
	for _, chunks := range []string{"zz\r\n", "5\r\nhello\r\nzz\r\n", "5\r\nhello!!\r\n", "-1\r\n"} {
		resp, _ := dial(t, url).send(t, "POST /last HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
		if resp.StatusCode != 400 || !resp.Close {
			t.Errorf("%q: status %d, close %v: want 400, and the connection closed", chunks, resp.StatusCode, resp.Close)
		}
	}
	if resp, _ := dial(t, url).send(t, "POST /last HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("chunks as they should be: status %d, want 200", resp.StatusCode)
	}
}

// A client that stops in the middle of its upload gets what the upstream has answered, and is given up in any case: its
// connection is not kept for ever.
func TestServeStalledUpload(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // an upstream that does as the path says
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				req, err := http.ReadRequest(bufio.NewReader(c))
				switch {
				case err != nil:
				case req.URL.Path == "/answers":
					_, _ = io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
					_, _ = io.Copy(io.Discard, c)
				case req.URL.Path == "/silent":
					_, _ = io.Copy(io.Discard, c)
				}
			}()
		}
	}()
	rules := write(t, "rules: [{name: last, match: /, limits: [{algorithm: fixed_window, limit: 1000/d, subject: ip}]}]\n")
	url, _ := served(t, rules, "--upstream", "http://"+l.Addr().String(), "--upstream-timeout", "1s")
	type stalled struct {
		what     string
		conn     raw
		statuses []int
	}
	var all []stalled // at once, since each of them takes its time
	for path, statuses := range map[string][]int{"/answers": {401}, "/silent": {408, 504}, "/closes": {502, 408}} {
		for _, length := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
			for _, part := range []string{"", "a\r\n0123456789\r\n"} {
				conn := dial(t, url)
				conn.write(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n%s", path, length, part))
				all = append(all, stalled{fmt.Sprintf("%s, %s, %q", path, length, part), conn, statuses})
			}
		}
	}
	for _, s := range all {
		if resp, _ := s.conn.answer(t); !slices.Contains(s.statuses, resp.StatusCode) {
			t.Errorf("%s: status %d, want one of %v", s.what, resp.StatusCode, s.statuses)
		}
		if n, err := s.conn.answers.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the connection goes on: %d bytes, %v", s.what, n, err)
		}
	}
}

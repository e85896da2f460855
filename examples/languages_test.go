// Package examples_test runs the clients in other languages against a real Redis, beside Go.
package examples_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/redis"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// lacks skips a test whose language is not installed; with CI set it must be.
func lacks(t *testing.T, what, packages string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("no %s: install %s", what, packages)
	}
	t.Skipf("no %s: not tested (Debian: apt-get install %s)", what, packages)
}

// bucket is the limit of all tests: a day, so that nothing comes back while they run.
func bucket(t *testing.T, count int64) (sluice.Strategy, []string) {
	t.Helper()
	st, err := tokenbucket.New(sluice.Limit{Count: count, Period: 24 * time.Hour, Burst: count})
	if err != nil {
		t.Fatal(err)
	}
	_, params := st.Lua()
	var words []string
	for _, p := range params {
		words = append(words, strconv.FormatInt(p, 10))
	}
	return st, words
}

// scriptFile writes what `sluice script token_bucket --reply plain` prints.
func scriptFile(t *testing.T, st sluice.Strategy, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "token_bucket.lua")
	if err := os.WriteFile(path, []byte(redis.PlainSource(st)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// finish runs a command for at most a minute and returns what it prints.
func finish(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// subjects are such that each kind of byte and length is in a key.
var subjects = []string{"192.0.2.1", "", "a b{c}%~*+é:@/-._", strings.Repeat("x", 128), strings.Repeat("x", 129)}

// keysOf are where the Go side keeps subjects.
func keysOf(st sluice.Strategy, rule string, subjects ...string) (keys []string) {
	store := redis.New(nil, redis.Options{})
	for _, s := range subjects {
		keys = append(keys, store.KeyOf(sluice.Ask{Strategy: st, Key: sluice.Key{Rule: rule, Subject: s}}))
	}
	slices.Sort(keys)
	return keys
}

// sameKeys compares the server's keys with those of the Go side.
func sameKeys(t *testing.T, server *redistest.Server, st sluice.Strategy, rule string, subjects ...string) {
	t.Helper()
	keys := server.Client().Keys(t.Context(), "*").Val()
	want := keysOf(st, rule, subjects...)
	if slices.Sort(keys); !slices.Equal(keys, want) {
		t.Errorf("keys\n%s\nwant\n%s", strings.Join(keys, "\n"), strings.Join(want, "\n"))
	}
}

// python finds one that has the redis module: Debian's, whatever comes first in PATH.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return name
		}
	}
	lacks(t, "Python with its redis module", "python3-redis")
	return ""
}

const pythonKeys = `
import sys, sluice
url, script, rule, *rest = sys.argv[1:]
params, subjects = rest[:3], rest[3:]
limiter = sluice.Limiter(url, open(script).read(), rule, "token_bucket", params, timeout=10)
for subject in subjects:
    limiter.redis.script_flush() # each call is NOSCRIPT first
    print(*limiter.take(subject), *limiter.take(subject, 3), *limiter.take(subject, 9)[:3])
`

func TestPython(t *testing.T) {
	name, server := python(t), redistest.Start(t)
	st, params := bucket(t, 5)
	args := append([]string{"-c", pythonKeys, "redis://" + server.Addr, scriptFile(t, st, t.TempDir()), "a rule/one"}, params...)
	out := finish(t, name, append(args, subjects...)...)
	checkReplies(t, out)
	sameKeys(t, server, st, "a rule/one", subjects...)
}

const pythonOddKeys = `
import os, sys, sluice
url, script, argument, *params = sys.argv[1:]
limiter = sluice.Limiter(url, open(script).read(), "login", "token_bucket", params, timeout=10)
for subject in [b"\xff", "\udcff", argument, b"caf\xe9", os.fsdecode(b"caf\xe9"), b"caf\xc3\xa9", "caf\u00e9", "\ud800", "\udfff\udcff"]:
    print(limiter.take(subject)[1])
`

// Bytes have the key that Go gives them, as bytes and as Python decodes them; any other text has a key too.
func TestPythonKeysOfOddSubjects(t *testing.T) {
	name, server := python(t), redistest.Start(t)
	st, params := bucket(t, 5)
	args := append([]string{"-c", pythonOddKeys, "redis://" + server.Addr, scriptFile(t, st, t.TempDir()), "\xff"}, params...)
	if got, want := strings.Fields(finish(t, name, args...)), strings.Fields("4 3 2 4 3 4 3 4 4"); !slices.Equal(got, want) {
		t.Errorf("remaining %v: want %v", got, want)
	}
	sameKeys(t, server, st, "login", "\xff", "caf\xe9", "café", "\xed\xa0\x80", "\xed\xbf\xbf\xed\xb3\xbf")
}

// checkReplies reads a line for each subject: one of five, three more, and nine that never pass. A fifth of a day is
// 17,280,000 ms.
func checkReplies(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(subjects) {
		t.Fatalf("%d lines for %d subjects:\n%s", len(lines), len(subjects), out)
	}
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 11 {
			t.Fatalf("%q: want 11 numbers", line)
		}
		second, _ := strconv.Atoi(f[7])
		f[7] = "?" // some ms have passed
		if got := strings.Join(f, " "); got != "1 4 0 17280000 1 1 0 ? 0 1 -1" || second > 4*17_280_000 || second < 3*17_280_000 {
			t.Errorf("%q, reset %d: want 1 4 0 17280000, 1 1 0 and up to 69120000, 0 1 -1", line, second)
		}
	}
}

const javaMain = `
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

public class Main {
    public static void main(String[] a) throws Exception {
        try (var socket = new java.net.Socket()) {
            socket.connect(new java.net.InetSocketAddress(a[0], Integer.parseInt(a[1])), 10000);
            socket.setSoTimeout(10000);
            var in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            socket.getOutputStream().write("AUTH secret\r\n".getBytes()); // as docs/languages.md has it
            if (!"+OK".equals(in.readLine())) throw new IOException("Redis: AUTH");
            var limiter = new Sluice(in, socket.getOutputStream(), Files.readString(Path.of(a[2])), a[3], a[4], "token_bucket", List.of(a).subList(5, 8));
            for (String subject : Files.readString(Path.of(a[8])).split("\n", -1)) {
                long[] one = limiter.take(subject, 1), three = limiter.take(subject, 3), nine = limiter.take(subject, 9);
                System.out.printf("%d %d %d %d %d %d %d %d %d %d %d%n", one[0], one[1], one[2], one[3],
                    three[0], three[1], three[2], three[3], nine[0], nine[1], nine[2]);
            }
        }
    }
}
`

// java compiles a class Main beside the client, into folder.
func java(t *testing.T, folder, main string) {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("no javac in PATH: the Java client is not tested (Debian: apt-get install default-jdk-headless)")
	}
	path := filepath.Join(folder, "Main.java")
	if err := os.WriteFile(path, []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	finish(t, "javac", "-encoding", "UTF-8", "-d", folder, "java/Sluice.java", path)
}

func TestJava(t *testing.T) {
	server, folder := redistest.Start(t), t.TempDir()
	java(t, folder, javaMain)
	st, params := bucket(t, 5)
	script := scriptFile(t, st, folder)
	admin := server.Client() // one connection, which stays logged in
	sha, err := admin.ScriptLoad(t.Context(), redis.PlainSource(st)).Result()
	if err == nil {
		err = admin.ScriptFlush(t.Context()).Err() // the first call is NOSCRIPT
	}
	if err == nil {
		err = admin.ConfigSet(t.Context(), "requirepass", "secret").Err()
	}
	list := filepath.Join(folder, "subjects") // arguments may be no UTF-8
	if err == nil {
		err = os.WriteFile(list, []byte(strings.Join(subjects, "\n")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(server.Addr)
	args := append([]string{"-cp", folder, "Main", host, port, script, sha, "a rule/one"}, params...)
	checkReplies(t, finish(t, "java", append(args, list)...))
	if err := admin.ConfigSet(t.Context(), "requirepass", "").Err(); err != nil {
		t.Fatal(err)
	}
	sameKeys(t, server, st, "a rule/one", subjects...)
}

// fakeRedis sends each connection one of the replies, in order, whatever it is asked, and no more after it. received waits
// for the end of the last connection, and returns how many bytes came by it.
func fakeRedis(t *testing.T, replies ...string) (addr string, received func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	last := make(chan int64, 1)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		defer close(last)
		for i, reply := range replies {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, reply)
			_ = c.(*net.TCPConn).CloseWrite()
			if n, _ := io.Copy(io.Discard, c); i == len(replies)-1 {
				last <- n
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String(), func() int64 { return <-last }
}

const javaFaults = `
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Main {
    public static void main(String[] a) throws Exception {
        for (int i = 0; i < Integer.parseInt(a[1]); i++) System.out.println(take(Integer.parseInt(a[0]), "192.0.2.1"));
        System.out.println(take(Integer.parseInt(a[0]), "\ud800"));
    }
    private static String take(int port, String subject) throws Exception {
        try (var socket = new java.net.Socket("127.0.0.1", port)) {
            socket.setSoTimeout(10000);
            var in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            return Arrays.toString(new Sluice(in, socket.getOutputStream(), "", "", "login", "token_bucket", List.of()).take(subject, 1));
        } catch (IOException e) {
            return "IOException";
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
    }
}
`

// A reply that is cut off or unusable is an IOException, and so is a Redis that does not know the script that it was sent.
func TestJavaFaults(t *testing.T) {
	const good, unknown = "*4\r\n:1\r\n:9\r\n:0\r\n:12000\r\n", "-NOSCRIPT No matching script.\r\n"
	replies := [][2]string{ // what Redis sends, and what take does
		{good, "[1, 9, 0, 12000]"},
		{unknown + good, "[1, 9, 0, 12000]"},
		{"*4\r\n:0\r\n:9\r\n:-1\r\n:0\r\n", "[0, 9, -1, 0]"},
		{"-ERR x\r\n", "IOException"},
		{unknown + unknown + good, "IOException"}, // which is not asked a third time
		{unknown + "-ERR x\r\n", "IOException"},
		{"*5" + good[2:] + ":1\r\n", "IOException"},
		{"*40" + good[2:], "IOException"},
	}
	for cut := range len(good) {
		replies = append(replies, [2]string{good[:cut], "IOException"})
	}
	for _, element := range []string{"-ERR x", "$1\r\n1", "1", ":", ":x", ":-", "$-1", "_", ":9999999999999999999", ":1:1"} {
		replies = append(replies, [2]string{"*4\r\n" + element + "\r\n" + good[len("*4\r\n:1\r\n"):], "IOException"})
	}
	folder := t.TempDir()
	java(t, folder, javaFaults)
	var texts []string
	for _, reply := range replies {
		texts = append(texts, reply[0])
	}
	addr, received := fakeRedis(t, append(texts, "")...)
	_, port, _ := net.SplitHostPort(addr)
	got := strings.Split(strings.TrimSpace(finish(t, "java", "-cp", folder, "Main", port, strconv.Itoa(len(replies)))), "\n")
	if len(got) != len(replies)+1 {
		t.Fatalf("%d lines for %d replies: %q", len(got), len(replies), got)
	}
	for i, reply := range replies {
		if got[i] != reply[1] {
			t.Errorf("reply %q: %s: want %s", reply[0], got[i], reply[1])
		}
	}
	if got, sent := got[len(replies)], received(); got != "IllegalArgumentException" || sent != 0 {
		t.Errorf("a lone surrogate: %s, %d bytes sent: want an IllegalArgumentException, since it has no key", got, sent)
	}
}

// patient are edits of nginx.conf: it waits for Redis on a busy machine, and is one process, which ends with the test.
var patient = []string{"timeout = 50,", "timeout = 9999,", "daemon off;", "daemon off;\nmaster_process off;"}

// nginx starts one with sluice.lua before the address, and returns its URL. edits are old, new, old, new.
func nginx(t *testing.T, redisAddr string, st sluice.Strategy, params []string, count int64, edits ...string) string {
	t.Helper()
	if _, err := exec.LookPath("nginx"); err != nil {
		lacks(t, "nginx", "nginx libnginx-mod-http-lua")
	}
	const modules = "/usr/lib/nginx/modules/"
	if _, err := os.Stat(modules + "ngx_http_lua_module.so"); err != nil {
		lacks(t, "Lua module of nginx", "libnginx-mod-http-lua")
	}
	folder := t.TempDir()
	scriptFile(t, st, folder)
	config, err := os.ReadFile("nginx-lua/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	client, err := os.ReadFile("nginx-lua/sluice.lua")
	if err != nil {
		t.Fatal(err)
	}
	_, redisPort, _ := net.SplitHostPort(redisAddr)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	text := string(config)
	edits = append(edits,
		"port = 6379", "port = "+redisPort,
		"127.0.0.1:8090", addr,
		`params = { "12000000", "1", "10" }`, `params = { "`+strings.Join(params, `", "`)+`" }`,
		"count = 5, period = 60", fmt.Sprintf("count = %d, period = 86400", count),
		"http {", "http {\nclient_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;",
	)
	for i := 0; i < len(edits); i += 2 {
		at := strings.LastIndex(text, edits[i]) // comments come first
		if at < 0 {
			t.Fatalf("nginx.conf has no %q", edits[i])
		}
		text = text[:at] + edits[i+1] + text[at+len(edits[i]):]
	}
	for name, text := range map[string][]byte{"nginx.conf": []byte(text), "sluice.lua": client} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	log := &strings.Builder{}
	cmd := exec.Command("nginx", "-p", folder, "-c", "nginx.conf")
	cmd.Stderr = log
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // a master ends its workers; killed, it would leave them
		for deadline := time.Now().Add(10 * time.Second); !p.Ended() && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		p.Kill()
		if t.Failed() {
			t.Logf("nginx: %s", log)
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return "http://" + addr + "/"
		}
		if p.Ended() || time.Now().After(deadline) {
			p.Kill()
			t.Fatalf("nginx does not listen on %s: %s", addr, log)
		}
	}
}

// ask returns a response without its body.
func ask(t *testing.T, url string) *http.Response {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res
}

// nginx denies by Redis, then without Redis by its share, and by Redis again once that is back.
func TestNginxLua(t *testing.T) {
	const count = 6
	server := redistest.Start(t)
	st, params := bucket(t, count)
	url := nginx(t, server.Addr, st, params, count, patient...)
	passes := func() (n int) {
		for {
			res := ask(t, url)
			left := res.Header.Get("X-RateLimit-Remaining")
			switch {
			case res.StatusCode == http.StatusOK && n < 2*count:
				n++
			case res.StatusCode == http.StatusTooManyRequests && left == "0" && res.Header.Get("Retry-After") != "":
				return n
			default:
				t.Fatalf("after %d: status %d, %v", n, res.StatusCode, res.Header)
			}
		}
	}
	if n := passes(); n != count {
		t.Errorf("%d pass by Redis: want %d", n, count)
	}
	server.Kill()
	if n := passes(); n != count/2 {
		t.Errorf("%d pass without Redis: want %d, one server's share of two", n, count/2)
	}
	server.Restart() // empty
	for deadline := time.Now().Add(10 * time.Second); ask(t, url).StatusCode != http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("Redis is back, and nginx goes on without it")
		}
	}
	if keys := server.Client().Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != "sluice:{127.0.0.1}:login:token_bucket" {
		t.Errorf("keys %q: want one, of the address", keys)
	}
}

// While Redis hangs, the workers of one nginx let its share pass together, few requests wait for Redis, and none for long.
func TestNginxLuaWithHungRedis(t *testing.T) {
	const count, callers, calls = 100, 8, 30
	server := redistest.Start(t)
	st, params := bucket(t, count)
	const timeout = 500 * time.Millisecond // more than a busy machine makes of a request that does not wait
	url := nginx(t, server.Addr, st, params, count,
		"timeout = 50,", "timeout = 500,", "daemon off;", "daemon off;\nworker_processes 2;",
		"127.0.0.1:8090;", "127.0.0.1:8090 reuseport;", // connections go to both
		"local reply = ", `ngx.header["X-Worker"] = ngx.worker.id() local reply = `)
	server.Stop()
	var mu sync.Mutex
	passed, waited, longest, workers := 0, 0, time.Duration(0), map[string]int{}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls {
				start := time.Now()
				res, err := client.Get(url)
				took := time.Since(start)
				if err != nil {
					t.Errorf("nginx: %v", err)
					return
				}
				_ = res.Body.Close()
				mu.Lock()
				workers[res.Header.Get("X-Worker")]++
				longest = max(longest, took)
				if took >= timeout {
					waited++
				}
				if res.StatusCode == http.StatusOK {
					passed++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d pass, %d of %d waited for Redis, the longest took %v; by worker: %v", passed, waited, callers*calls, longest, workers)
	if passed != count/2 {
		t.Errorf("%d pass: want %d, one server's share of two", passed, count/2)
	}
	if len(workers) != 2 {
		t.Errorf("workers %v: want two", workers)
	}
	if waited == 0 || waited > callers*calls/2 || longest > 20*timeout {
		t.Errorf("%d of %d waited, the longest %v: want some, and not for each request anew", waited, callers*calls, longest)
	}
	server.Cont()
	for deadline := time.Now().Add(10 * time.Second); ask(t, url).StatusCode != http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("Redis is back, and nginx goes on without it")
		}
	}
}

// A cost that is no whole number from 0 on is an error before anything is counted, with Redis and without.
func TestNginxLuaRefusesCosts(t *testing.T) {
	const count = 6
	server := redistest.Start(t)
	st, params := bucket(t, count)
	site := nginx(t, server.Addr, st, params, count, append(patient, "remote_addr, 1)",
		`remote_addr, loadstring("return " .. ngx.unescape_uri(ngx.var.arg_n))())`)...)
	with := func(n string) string {
		res := ask(t, site+"?n="+url.QueryEscape(n))
		return fmt.Sprintf("%d %s %s", res.StatusCode, res.Header.Get("X-RateLimit-Remaining"), res.Header.Get("Retry-After"))
	}
	refuses := func(when, remaining string) {
		for _, n := range []string{"-1", "-5", "0.5", "0/0", "1/0", "-1/0", "nil", "{}", "'x'", "true"} {
			if got := with(n); got != "500  " {
				t.Errorf("%s, n = %s: %q: want status 500", when, n, got)
			}
			if got := with("0"); got != "200 "+remaining+" " {
				t.Errorf("%s, after n = %s: %q: want %s remaining, as before", when, n, got, remaining)
			}
		}
	}
	if got := with("2"); got != "200 4 " {
		t.Errorf("by Redis: %q: want 4 remaining", got)
	}
	refuses("by Redis", "4")
	server.Kill()
	if got := with("2"); got != "200 1 " {
		t.Errorf("without Redis: %q: want 1 remaining, of half of %d", got, count)
	}
	refuses("without Redis", "1")
	for _, n := range []string{"4", "1e15", "2^53", "1e300"} { // sums of which a float would lose what was used
		if got := with(n); got != "429 1 " {
			t.Errorf("without Redis, n = %s: %q: want 1 remaining, and that it never passes", n, got)
		}
	}
	if got := with("1"); got != "200 0 " {
		t.Errorf("without Redis: %q: want the last one to pass", got)
	}
}

// A reply that is not four numbers decides nothing: nginx counts by itself.
func TestNginxLuaFaults(t *testing.T) {
	replies := [][2]string{ // what Redis sends, and what remains: of 3 without it
		{"*4\r\n:1\r\n:9\r\n:0\r\n:12000\r\n", "9"},
		{"*4\r\n:1\r\n-ERR x\r\n:0\r\n:12000\r\n", "2"},
		{"*4\r\n:1\r\n:8\r\n:0\r\n:12000\r\n", "8"}, // asked at once, after an error
		{"*4\r\n:1\r\n$7\r\n:0\r\n:12000\r\n", "1"},
	}
	var texts []string
	for _, reply := range replies {
		texts = append(texts, reply[0])
	}
	addr, _ := fakeRedis(t, texts...)
	st, params := bucket(t, 6)
	site := nginx(t, addr, st, params, 6, patient...)
	for _, reply := range replies {
		if res := ask(t, site); res.StatusCode != http.StatusOK || res.Header.Get("X-RateLimit-Remaining") != reply[1] {
			t.Errorf("reply %q: status %d, %q remaining: want 200, %s", reply[0], res.StatusCode, res.Header.Get("X-RateLimit-Remaining"), reply[1])
		}
	}
}

// Why nginx counts locally is in its log at the default level, and not once a request. Errors stop nobody from asking.
func TestNginxLuaLogsWhy(t *testing.T) {
	server := redistest.Start(t)
	st, params := bucket(t, 6)
	log := filepath.Join(t.TempDir(), "error.log")
	site := nginx(t, server.Addr, st, params, 6, append(patient, "error_log stderr warn;", "error_log "+log+";")...)
	admin := server.Client()
	do := func(args ...any) {
		t.Helper()
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	lines := func(why string) (n int) {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "[error]") && strings.Contains(line, "counts locally: ") && strings.Contains(line, why) {
				n++
			}
		}
		return n
	}
	logs := func(why string) {
		t.Helper()
		const calls = 50
		start := time.Now()
		for range calls {
			ask(t, site)
		}
		seconds := int(time.Since(start)/time.Second) + 1
		if n := lines(why); n == 0 || n > seconds+1 {
			t.Errorf("%s: %d lines for %d requests in %d s: want one a second", why, n, calls, seconds)
		}
	}
	const key = "sluice:{127.0.0.1}:login:token_bucket"
	ask(t, site)
	if n := lines(""); n != 0 {
		t.Errorf("%d lines with Redis at work: want none", n)
	}
	do("SET", key, "no hash")
	logs("-WRONGTYPE")
	do("DEL", key)
	do("REPLICAOF", "127.0.0.1", "1")
	logs("-READONLY")
	do("REPLICAOF", "NO", "ONE")
	do("CONFIG", "SET", "requirepass", "secret")
	do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") // those of nginx, which came in before
	logs("-NOAUTH")
	do("CONFIG", "SET", "requirepass", "")
	if got := ask(t, site).Header.Get("X-RateLimit-Remaining"); got != "5" {
		t.Errorf("%s remaining: want 5, by Redis, at once", got)
	}
	server.Kill()
	logs("connection refused")
}

const pythonMany = `
import sys, sluice
url, script, calls, *params = sys.argv[1:]
limiter = sluice.Limiter(url, open(script).read(), "login", "token_bucket", params, timeout=10)
print(sum(limiter.take("127.0.0.1")[0] for _ in range(int(calls))))
`

// nginx's Lua, Python and Go on one key at a time admit exactly one budget together.
func TestLanguagesShareOneBudget(t *testing.T) {
	const budget, calls = 600, 400 // each asks for two thirds of it
	name, server := python(t), redistest.Start(t)
	st, params := bucket(t, budget)
	url := nginx(t, server.Addr, st, params, 1, patient...) // without Redis it would let 1 pass
	store := redis.New(server.Client(), redis.Options{Timeout: 10 * time.Second})
	limiter := sluice.New(store, st, "login")
	script := scriptFile(t, st, t.TempDir())

	var wg sync.WaitGroup
	var byGo, byNginx, byPython atomic.Int64
	wg.Go(func() {
		for range calls {
			d, err := limiter.Allow(t.Context(), "127.0.0.1")
			if err != nil {
				t.Errorf("Go: %v", err)
			}
			byGo.Add(d.Charged)
			time.Sleep(200 * time.Microsecond) // to meet the others, which are slower
		}
	})
	for range 2 {
		wg.Go(func() {
			for range calls / 2 {
				res, err := http.Get(url)
				if err != nil {
					t.Errorf("nginx: %v", err)
					return
				}
				_ = res.Body.Close()
				if res.StatusCode == http.StatusOK {
					byNginx.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		args := append([]string{"-c", pythonMany, "redis://" + server.Addr, script, strconv.Itoa(calls)}, params...)
		out := finish(t, name, args...)
		n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if err != nil {
			t.Errorf("Python: %v", err)
		}
		byPython.Add(n)
	})
	wg.Wait()
	sum := byGo.Load() + byNginx.Load() + byPython.Load()
	t.Logf("of %d: Go %d, nginx %d, Python %d", budget, byGo.Load(), byNginx.Load(), byPython.Load())
	if sum != budget {
		t.Errorf("%d pass together: want exactly %d", sum, budget)
	}
}

// A client is short enough to be read: under 30 lines.
func TestClientsAreShort(t *testing.T) {
	for _, path := range []string{"python/sluice.py", "java/Sluice.java", "nginx-lua/sluice.lua"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines >= 30 {
			t.Errorf("%s has %d lines: want under 30", path, lines)
		}
	}
}

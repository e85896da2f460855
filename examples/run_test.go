//go:build unix

package examples_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/child"
)

// example is a folder with a run.sh.
type example struct {
	folder  string
	ports   map[string]string // variables and their defaults
	answers string            // to curl: status and what remains
	prints  []string          // besides, as regular expressions
	page    string            // that shows the answers, under which heading
}

const (
	fourLogins = "200 2, 200 1, 200 0, 429 0"
	nineLogins = "allowed, 8 remaining\nallowed, 7 remaining\nallowed, 6 remaining\nallowed, 5 remaining\n" +
		"allowed, 4 remaining\nallowed, 3 remaining\nallowed, 2 remaining\nallowed, 1 remaining\nallowed, 0 remaining\n" +
		"refused, retry after "
)

// loads are that each algorithm admits some and refuses some, and nothing else comes to pass.
var loads = []string{`(?s)token, 10/s:.*total +[1-9]\d* +[1-9]\d* +0\nfixed, .*total +[1-9]\d* +[1-9]\d* +0\n` +
	`sliding, .*total +[1-9]\d* +[1-9]\d* +0\nleaky, .*total +[1-9]\d* +[1-9]\d* +0\n$`}

var examples = []example{
	{"caddy", map[string]string{"PORT": "8089", "CHECK_PORT": "9181", "SERVICE_PORT": "9000"},
		fourLogins, nil, "gateway.md Caddy"},
	{"envoy", map[string]string{"PORT": "10000", "RATE_LIMIT_PORT": "8081", "SERVICE_PORT": "9000"},
		fourLogins, nil, ""},
	{"java", map[string]string{"PORT": "8080", "REDIS_PORT": "6390"}, "200 9, 429 0", []string{nineLogins}, ""},
	{"load", map[string]string{"PORT": "8080"}, "", loads, ""},
	{"nginx", map[string]string{"PORT": "8088", "CHECK_PORT": "9181", "SERVICE_PORT": "9000"}, fourLogins, nil, "gateway.md nginx"},
	{"nginx-lua", map[string]string{"PORT": "8090", "SLUICE_PORT": "8080", "REDIS_PORT": "6390"},
		"200 9, 200 8, 200 7, 200 6, 200 5, 200 4, 200 3, 200 2, 200 1, 200 0, 429 0, 429 0", nil, "languages.md nginx"},
	{"prometheus", map[string]string{"PORT": "8080", "ADMIN_PORT": "9180", "PROMETHEUS_PORT": "9090", "GRAFANA_PORT": "3000"},
		fourLogins, []string{`"outcome":"denied"`, `"name":"SluiceStoreAway"`, `"name":"SluiceMostAreRefused"`}, ""},
	{"python", map[string]string{"PORT": "8080", "REDIS_PORT": "6390"}, "200 9, 429 0", []string{nineLogins}, ""},
	{"routers", map[string]string{"CHI_PORT": "8091", "GIN_PORT": "8092", "ECHO_PORT": "8093"},
		fourLogins + ", " + fourLogins + ", " + fourLogins, nil, ""},
}

// output is what a process prints; it may be read meanwhile.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// running is a command in a process group and with a folder for temporary files of its own, whose name has a space.
type running struct {
	t        *testing.T
	cmd      *exec.Cmd
	process  *child.Process
	out, err output
	tmp      string
}

func start(t *testing.T, env []string, name string, args ...string) *running {
	t.Helper()
	r := &running{t: t, cmd: exec.Command(name, args...), tmp: filepath.Join(t.TempDir(), "a b")}
	if err := os.Mkdir(r.tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	r.cmd.Env = append(append(os.Environ(), "TMPDIR="+r.tmp), env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
	r.cmd.WaitDelay = 10 * time.Second
	var err error
	if r.process, err = child.Start(r.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		r.process.Kill()
	})
	return r
}

// until waits for a condition, for at most two minutes: the first to build takes its time.
func (r *running) until(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not %s:\n%s\n%s", what, &r.out, &r.err)
		}
	}
}

// builds waits until Go is at work: the ports have been looked at, and nothing listens there yet.
func (r *running) builds() {
	r.t.Helper()
	r.until("building", func() bool {
		found, err := filepath.Glob(filepath.Join(r.tmp, "*", "go-build*"))
		return r.process.Ended() || err == nil && len(found) > 0
	})
}

// clean checks that neither a process nor a file is left.
func (r *running) clean() {
	r.t.Helper()
	r.until("ended", r.process.Ended)
	r.until("rid of its processes", func() bool { return errors.Is(syscall.Kill(-r.cmd.Process.Pid, 0), syscall.ESRCH) })
	if left, err := os.ReadDir(r.tmp); err != nil || len(left) > 0 {
		r.t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// without matches what run.sh says if a program is missing.
var without = regexp.MustCompile(`(?m)^.*run.sh: ((?:no|nginx has no) .*(?:apt-get install (.*)|Debian has no package)\))$`)

// skip skips a test whose program is missing. With CI set it must be there, unless Debian lacks it, or as with Java has it in
// packages of 120 MB.
func (r *running) skip(e example) {
	if m := without.FindStringSubmatch(r.err.String()); m != nil {
		if os.Getenv("CI") != "" && m[2] != "" && e.folder != "java" {
			r.t.Fatal(m[1])
		}
		r.t.Skip(m[1])
	}
}

// free gives each of an example's ports another that nobody listens at, and that is never a client's: it is to be free
// until the example has been built.
func (e example) free(t *testing.T) (env []string, ports map[string]string) {
	t.Helper()
	ports = map[string]string{}
	for name := range e.ports {
		for ports[name] == "" {
			port := strconv.Itoa(20000 + rand.IntN(10000))
			if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
				defer l.Close() // until all are found
				ports[name] = port
			}
		}
		env = append(env, name+"="+ports[name])
	}
	return env, ports
}

var remaining = regexp.MustCompile(`;r=(\d+);`)

// answers reads what curl -i printed: "200 1, 429 0". A refusal says when to come again.
func answers(t *testing.T, out string) string {
	t.Helper()
	var found []string
	for _, at := range regexp.MustCompile(`(?m)^HTTP/`).FindAllStringIndex(out, -1) {
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(out[at[0]:])), nil)
		if err != nil {
			t.Fatal(err)
		}
		left := res.Header.Get("X-RateLimit-Remaining")
		if m := remaining.FindStringSubmatch(res.Header.Get("RateLimit")); m != nil && res.Header.Get("RateLimit-Policy") != "" {
			left = m[1]
		}
		after := res.Header.Get("Retry-After")
		if s, err := strconv.Atoi(after); res.StatusCode == http.StatusTooManyRequests && (err != nil || s < 1) {
			t.Errorf("refused with Retry-After %q: want whole seconds", after)
		}
		found = append(found, fmt.Sprint(res.StatusCode, " ", left))
	}
	return strings.Join(found, ", ")
}

// Each run.sh sends its requests, gets the answers that it is there to show, and leaves nothing.
func TestRun(t *testing.T) {
	for _, e := range examples {
		t.Run(e.folder, func(t *testing.T) {
			t.Parallel()
			env, ports := e.free(t)
			before := files(t, e.folder)
			r := start(t, env, "sh", e.folder+"/run.sh", "--once")
			r.clean()
			r.skip(e)
			if r.cmd.ProcessState.ExitCode() != 0 {
				t.Fatalf("%v:\n%s\n%s", r.cmd.ProcessState, &r.out, &r.err)
			}
			out := r.out.String()
			if got := answers(t, out); got != e.answers {
				t.Errorf("answers %s: want %s", got, e.answers)
			}
			for _, what := range e.prints {
				if !regexp.MustCompile(what).MatchString(out) {
					t.Errorf("nothing printed matches %q", what)
				}
			}
			if after := files(t, e.folder); !slices.Equal(after, before) {
				t.Errorf("the folder has %q now: want %q", after, before)
			}
			if e.page != "" {
				for name, port := range ports {
					out = strings.ReplaceAll(out, "127.0.0.1:"+port, "127.0.0.1:"+e.ports[name])
				}
				transcripts(t, e.page, out)
			}
			if t.Failed() {
				t.Logf("it printed:\n%s\n%s", &r.out, &r.err)
			}
		})
	}
}

func files(t *testing.T, folder string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

// transcripts checks that the answers which a page of docs shows under a heading are among those printed.
func transcripts(t *testing.T, where, out string) {
	t.Helper()
	page, heading, _ := strings.Cut(where, " ")
	text, err := os.ReadFile(filepath.Join("../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	count := 0
	for _, m := range regexp.MustCompile("(?ms)^```text\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		if !strings.Contains(m[1], "HTTP/1.1 ") {
			continue
		}
		count++
		shown, _, _ := strings.Cut(m[1], "...\n")
		if !strings.Contains(lasting(out), lasting(shown)) {
			t.Errorf("docs/%s, %s has\n%s\nand now it is\n%s", page, heading, lasting(shown), lasting(out))
		}
	}
	if count == 0 {
		t.Errorf("docs/%s, %s shows no answer", page, heading)
	}
}

// lasting is a transcript without what differs from run to run, and the fields that pages leave out.
func lasting(text string) string {
	for _, r := range []struct{ what, as string }{
		{`\r`, ""},
		{`(?m)^(?:Date|Content-Length|Connection|Transfer-Encoding): .*\n`, ""},
		{`(?m)^(\$ .*?) +#.*$`, "$1"},
		{`nginx/[\d.]+`, "nginx/VERSION"},
		{`;t=\d+`, ";t=SECONDS"},
		{`Retry-After: \d+`, "Retry-After: SECONDS"},
	} {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.as)
	}
	return text
}

// Ctrl-C, which a terminal sends to the whole group, ends all processes of an example, and removes its files.
func TestCtrlC(t *testing.T) {
	for _, e := range examples {
		if !slices.Contains([]string{"caddy", "nginx-lua", "prometheus"}, e.folder) {
			continue
		}
		t.Run(e.folder, func(t *testing.T) {
			t.Parallel()
			env, _ := e.free(t)
			r := start(t, env, "sh", e.folder+"/run.sh")
			r.until("started", func() bool { return r.process.Ended() || strings.Contains(r.out.String(), "\nCtrl-C ends it.\n") })
			r.skip(e)
			if !strings.Contains(r.out.String(), "\nTry: curl -i ") {
				t.Errorf("it does not say what to try:\n%s\n%s", &r.out, &r.err)
			}
			if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			r.clean()
			if r.cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("%v:\n%s\n%s", r.cmd.ProcessState, &r.out, &r.err)
			}
		})
	}
}

// Who reads the first line alone, as head does, leaves nothing behind either.
func TestClosedPipe(t *testing.T) {
	e := example{ports: map[string]string{"PORT": "8080"}}
	env, _ := e.free(t)
	r := start(t, env, "sh", "-c", "sh load/run.sh --once | head -n 1")
	r.clean()
	if !strings.HasPrefix(r.out.String(), "listening on ") {
		t.Errorf("it printed %q, %q", &r.out, &r.err)
	}
}

// Ctrl-C before there is anything to see is no success, and leaves none of the builder's files.
func TestCtrlCWhileBuilding(t *testing.T) {
	e := example{ports: map[string]string{"PORT": "8080"}}
	env, _ := e.free(t)
	r := start(t, env, "sh", "load/run.sh")
	r.builds()
	if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.clean()
	if code := r.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("%v:\n%s\n%s\nwant exit status 130", r.cmd.ProcessState, &r.out, &r.err)
	}
}

// A port that can't be used is an error that names its variable, before anything is built.
func TestPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	const bound = ": want a number from 1 to 65535"
	for _, c := range []struct{ name, port, check, want string }{
		{"taken", taken, "", "port " + taken + " is taken: set PORT to another"},
		{"given twice", "1", "1", "port 1 is PORT already: set CHECK_PORT to another"},
		{"a word", "abc", "", "PORT=abc" + bound},
		{"0", "0", "", "PORT=0" + bound},
		{"too large", "65536", "", "PORT=65536" + bound},
		{"beyond 64 bits", "18446744073709559616", "", "PORT=18446744073709559616" + bound},
		{"octal", "010000", "", "PORT=010000" + bound},
		{"two", "1 2", "", "PORT=1 2" + bound},
		{"the second", "1", "-1", "CHECK_PORT=-1" + bound},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, []string{"PORT=" + c.port, "CHECK_PORT=" + c.check}, "sh", "nginx/run.sh", "--once")
			r.clean()
			want := "nginx/run.sh: " + c.want + "\n"
			if r.cmd.ProcessState.ExitCode() != 1 || r.err.String() != want || r.out.String() != "" {
				t.Errorf("%v, %q, %q: want exit status 1 and %q", r.cmd.ProcessState, &r.out, &r.err, want)
			}
		})
	}
}

// Who takes a port while the example is being built is not asked in its place, be the program that was to listen there
// at an end or, as nginx for a while, at its next try.
func TestPortOfAnother(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err) // a machine without IPv6
			continue
		}
		t.Cleanup(func() { l.Close() })
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, program := range []string{"true", "sleep 60"} {
			t.Run(address+" "+program, func(t *testing.T) {
				t.Parallel()
				r := start(t, nil, "sh", "-c", ". ./start.sh; start "+port+" "+program+"; echo started", "load/run.sh")
				r.clean()
				want := "load/run.sh: port " + port + " was taken before "
				if r.cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(r.err.String(), want) || r.out.String() != "" {
					t.Errorf("%v, %q, %q: want exit status 1 and %q", r.cmd.ProcessState, &r.out, &r.err, want)
				}
			})
		}
	}
}

// The rule file's own command serves it, and ends at Ctrl-C.
func TestServe(t *testing.T) {
	e := example{ports: map[string]string{"PORT": "8080"}}
	_, ports := e.free(t)
	r := start(t, nil, "go", "run", "../cmd/sluice", "serve", "rules.yaml", "--listen", "127.0.0.1:"+ports["PORT"], "--admin", "off")
	r.until("listening", func() bool { return r.process.Ended() || strings.Contains(r.out.String(), "leaky: ") })
	const most = 100 // ten at once, and one more each 100 ms
	for n := 0; ; n++ {
		res := ask(t, "http://127.0.0.1:"+ports["PORT"]+"/token")
		if res.Header.Get("RateLimit") == "" || res.StatusCode != 200 && res.StatusCode != 429 {
			t.Fatalf("status %d, %v", res.StatusCode, res.Header)
		}
		if res.StatusCode == 429 {
			if n < 10 {
				t.Errorf("%d pass: want 10", n)
			}
			break
		}
		if n == most {
			t.Fatalf("%d requests pass", n)
		}
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT)
	r.until("ended", r.process.Ended)
	r.until("rid of its processes", func() bool { return errors.Is(syscall.Kill(-r.cmd.Process.Pid, 0), syscall.ESRCH) })
}

// README.md has a line for each folder, with a command that is there, and each run.sh is run by a test.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| \\[(.*?)\\]\\((.*?)\\) \\| .+ \\| `(.*?)` \\| .+ \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if m[1] != m[2] {
			t.Errorf("README.md: %s links to %s", m[1], m[2])
		}
		commands[m[1]] = m[3]
	}
	list, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.IsDir() && commands[f.Name()] == "" {
			t.Errorf("README.md: no command for %s", f.Name())
		}
	}
	for name, command := range commands {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("README.md: %v", err)
		}
		path, script := strings.CutPrefix(command, "sh examples/")
		folder, run := strings.CutSuffix(path, "/run.sh")
		tested := script && run && slices.ContainsFunc(examples, func(e example) bool { return e.folder == folder })
		if !tested && command != "go run ./cmd/sluice serve examples/rules.yaml" {
			t.Errorf("README.md: %s: no test runs %q", name, command)
		}
	}
}

// The scripts are POSIX's: each shell that is here can read them.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("*/run.sh")
	if err != nil || len(scripts) != len(examples) {
		t.Errorf("scripts %q, %v: want one for each of %d examples", scripts, err, len(examples))
	}
	for _, script := range append(scripts, "start.sh") {
		for _, shell := range []string{"sh", "dash", "bash"} {
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			if out, err := exec.Command(shell, "-n", script).CombinedOutput(); err != nil {
				t.Errorf("%s -n %s: %v: %s", shell, script, err, out)
			}
		}
		if info, err := os.Stat(script); err != nil || script != "start.sh" && info.Mode()&0o111 == 0 {
			t.Errorf("%s can't be run as it is: %v", script, err)
		}
	}
}

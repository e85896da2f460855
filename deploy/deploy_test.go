// Package deploy_test checks the examples of this folder: the command, built as the Dockerfile builds it, serves what the
// manifests configure, and answers their probes.
package deploy_test

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/policy/rulefile"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// at follows a path of names and numbers into a YAML document.
func at[T any](t *testing.T, document any, path string) T {
	t.Helper()
	v := document
	for name := range strings.SplitSeq(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(node) {
				t.Fatalf("%s: no element %s", path, name)
			}
			v = node[i]
		}
	}
	found, ok := v.(T)
	if !ok {
		t.Fatalf("%s is %v (%T): want a %T", path, v, v, found)
	}
	return found
}

// objects are the Kubernetes objects by kind.
func objects(t *testing.T) map[string]any {
	t.Helper()
	found := map[string]any{}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "kubernetes.yaml")))
	for {
		var o any
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("kubernetes.yaml: %v", err)
		}
		found[at[string](t, o, "kind")] = o
	}
}

func texts(list []any) (out []string) {
	for _, v := range list {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// build runs the Dockerfile's own build command.
func build(t *testing.T) (binary string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*) -o /sluice (.*)$`).FindStringSubmatch(read(t, "Dockerfile"))
	if line == nil {
		t.Fatal("Dockerfile: no RUN CGO_ENABLED=0 go build ... -o /sluice ...")
	}
	binary = filepath.Join(t.TempDir(), "sluice")
	cmd := exec.Command("sh", "-c", line[1]+" -o "+binary+" "+line[2])
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// The image is empty but for a static binary, and runs as a user by number that is not root.
func TestDockerfile(t *testing.T) {
	text := read(t, "Dockerfile")
	for _, want := range []string{`(?m)^FROM scratch$`, `(?m)^USER [1-9]\d*:[1-9]\d*$`, `(?m)^ENTRYPOINT \["/sluice"\]$`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("Dockerfile: nothing matches %s", want)
		}
	}
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if want := "FROM golang:" + module[1] + " "; !strings.Contains(text, want) {
		t.Errorf("Dockerfile: want %q, as go.mod says", want)
	}
	if runtime.GOOS != "linux" {
		return
	}
	binary, err := elf.Open(build(t))
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary is not static: it names a loader")
		}
	}
}

// The rules of both examples are one text, and valid.
func TestRules(t *testing.T) {
	text := read(t, "rules.yaml")
	if _, err := rulefile.Parse("rules.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
	_, rest, _ := strings.Cut(text, "\n")
	if got := at[map[string]any](t, objects(t)["ConfigMap"], "data")["rules.yaml"]; got != rest {
		t.Errorf("kubernetes.yaml: the ConfigMap has\n%s\nwant\n%s", got, rest)
	}
}

// What a container serves is reached from outside, and no more than that is said to be: the operators' port, which shows
// who is denied, is open where arguments say so.
func TestDockerfilePorts(t *testing.T) {
	text := read(t, "Dockerfile")
	line := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(text)
	if line == nil {
		t.Fatal("Dockerfile: no CMD [...]")
	}
	var args []string
	if err := json.Unmarshal([]byte(line[1]), &args); err != nil {
		t.Fatalf("Dockerfile: CMD: %v", err)
	}
	var open []string
	for _, flag := range []string{"--listen", "--admin"} {
		i := slices.Index(args, flag)
		if i < 0 || i+1 == len(args) {
			t.Fatalf("Dockerfile: CMD %v: want %s, whose default is an address that nobody else reaches", args, flag)
		}
		if port, ok := strings.CutPrefix(args[i+1], ":"); ok {
			open = append(open, port)
		} else if args[i+1] != "off" {
			t.Errorf("Dockerfile: CMD: %s %s is not reached from outside: want :PORT or off", flag, args[i+1])
		}
	}
	var said []string
	for _, m := range regexp.MustCompile(`(?m)^EXPOSE (.*)$`).FindAllStringSubmatch(text, -1) {
		said = append(said, strings.Fields(m[1])...)
	}
	if !slices.Equal(said, open) {
		t.Errorf("Dockerfile: EXPOSE %v, and CMD opens %v", said, open)
	}
}

// A rule file is mounted by its folder: a mount of the file itself stays with the one that editors replace.
func TestMounts(t *testing.T) {
	var compose any
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	mounts := texts(at[[]any](t, compose, "services.sluice-1.volumes"))
	for _, m := range regexp.MustCompile(`-v "([^"]*)"`).FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		mounts = append(mounts, strings.Replace(m[1], "$PWD", "..", 1))
	}
	if len(mounts) != 2 {
		t.Errorf("mounts %v: want one of compose and one of the Dockerfile", mounts)
	}
	for _, mount := range mounts {
		parts := strings.Split(mount, ":")
		if len(parts) != 3 || parts[1] != "/etc/sluice" || parts[2] != "ro" {
			t.Errorf("%s: want FOLDER:/etc/sluice:ro", mount)
			continue
		}
		if _, err := os.Stat(filepath.Join(parts[0], "rules.yaml")); err != nil {
			t.Errorf("%s: %v", mount, err)
		}
	}
}

// A pod that ends goes on serving until no new request is sent to it, and then has the time that the command gives those
// under way.
func TestPodEnds(t *testing.T) {
	const pod = "spec.template.spec."
	deployment := objects(t)["Deployment"]
	grace := regexp.MustCompile(`(?m)^\s*graceTime\s*= (\d+) \* time\.Second`).FindStringSubmatch(read(t, "../cmd/sluice/serve.go"))
	if grace == nil {
		t.Fatal("cmd/sluice/serve.go: no graceTime = N * time.Second")
	}
	under, _ := strconv.Atoi(grace[1])
	sleep := at[int](t, deployment, pod+"containers.0.lifecycle.preStop.sleep.seconds")
	total := at[int](t, deployment, pod+"terminationGracePeriodSeconds")
	if sleep < 1 || total <= sleep+under {
		t.Errorf("kubernetes.yaml: %d s until SIGKILL: want more than the %d s of preStop and %d s for requests under way", total, sleep, under)
	}
}

// process starts the command with a manifest's arguments, on free ports, and returns the addresses that it prints.
func process(t *testing.T, binary, redisURL string, args []string) (listen, admin string) {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(read(t, "rules.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	var local []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "/etc/sluice/rules.yaml":
			local = append(local, rules)
		case args[i] == "--upstream": // there is none here
			i++
		case strings.HasPrefix(args[i], ":"):
			local = append(local, "127.0.0.1:0")
		default:
			local = append(local, args[i])
		}
	}
	cmd := exec.Command(binary, local...)
	cmd.Env = append(os.Environ(), "REDIS_URL="+redisURL)
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd.Stdout = w
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); _ = out.Close() })
	_ = out.SetReadDeadline(time.Now().Add(20 * time.Second))
	lines := bufio.NewScanner(out)
	for (listen == "" || admin == "") && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			url := "http://" + strings.TrimRight(strings.Fields(rest)[0], ",")
			switch {
			case strings.HasPrefix(lines.Text(), "listening"):
				listen = url
			case strings.HasPrefix(lines.Text(), "admin"):
				admin = url
			}
		}
	}
	if listen == "" || admin == "" {
		t.Fatalf("%v prints no addresses to listen on and for operators: %v", local, lines.Err())
	}
	return listen, admin
}

// status asks until the answer is the wanted one, for at most ten seconds.
func status(t *testing.T, url string, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode == want {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: status %d, want %d", url, res.StatusCode, want)
			return
		}
	}
}

// What the Deployment and the compose file run listens, answers the probes, and goes on answering them without Redis.
func TestProbes(t *testing.T) {
	all := objects(t)
	if len(all) != 4 {
		t.Errorf("kubernetes.yaml has %d kinds: want Secret, ConfigMap, Deployment, Service", len(all))
	}
	const pod = "spec.template.spec."
	deployment := all["Deployment"]
	if !at[bool](t, deployment, pod+"securityContext.runAsNonRoot") {
		t.Error("kubernetes.yaml: want runAsNonRoot")
	}
	if url := at[string](t, all["Secret"], "stringData.REDIS_URL"); !strings.HasPrefix(url, "redis://") {
		t.Errorf("kubernetes.yaml: REDIS_URL is %q", url)
	}
	args := texts(at[[]any](t, deployment, pod+"containers.0.args"))
	var compose any
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	composed := texts(at[[]any](t, compose, "services.sluice-1.command"))
	if second := texts(at[[]any](t, compose, "services.sluice-2.command")); !slices.Equal(second, composed) {
		t.Errorf("docker-compose.yaml: sluice-2 runs %v: want %v", second, composed)
	}
	server, binary := redistest.Start(t), build(t)
	listen, admin := process(t, binary, "redis://"+server.Addr, args)
	second, _ := process(t, binary, "redis://"+server.Addr, composed)
	probes := map[string]string{}
	for _, kind := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		path := pod + "containers.0." + kind + ".httpGet."
		if port := at[string](t, deployment, path+"port"); port != "admin" {
			t.Errorf("%s asks port %s: want admin", kind, port)
		}
		probes[kind] = admin + at[string](t, deployment, path+"path")
	}
	asked := func() {
		for _, url := range probes {
			status(t, url, http.StatusOK)
		}
		status(t, listen, http.StatusOK)
		status(t, second, http.StatusOK)
	}
	asked()
	server.Kill()
	asked()
}

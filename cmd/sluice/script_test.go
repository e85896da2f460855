package main

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/redistest"
)

// The printed line, pasted into a shell, charges the key that the Go side uses, and the SHA is of the printed text.
func TestScriptPaste(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("no redis-cli in PATH (Debian: apt-get install redis-tools)")
	}
	server := redistest.Start(t)
	host, port, _ := net.SplitHostPort(server.Addr)
	bin := filepath.Dir(build(t))
	redisCLI, _ := exec.LookPath("redis-cli")
	wrapper := "#!/bin/sh\nexec " + redisCLI + " -h " + host + " -p " + port + " \"$@\"\n" // the test's server, not port 6379
	if err := os.WriteFile(filepath.Join(bin, "redis-cli"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	paste := func(args ...string) scriptCall {
		t.Helper()
		var out, stderr bytes.Buffer
		args = append([]string{"script", "token_bucket", "--limit", "5/min", "--burst", "10", "--rule", "login", "--subject", "it's {192.0.2.1}"}, args...)
		if exit := run(t.Context(), append(args, "--json"), &out, &stderr); exit != 0 {
			t.Fatalf("%v: exit %d, %s", args, exit, &stderr)
		}
		var call scriptCall
		if err := json.Unmarshal(out.Bytes(), &call); err != nil {
			t.Fatal(err)
		}
		sum := sha1.Sum([]byte(call.Script))
		if call.SHA != hex.EncodeToString(sum[:]) {
			t.Errorf("%v: sha %s is not the script's", args, call.SHA)
		}
		return call
	}
	shell := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	plain, words := paste("--reply", "plain"), paste()
	if out := shell(plain.RedisCLI); !strings.HasPrefix(out, plain.SHA+"\n1\n9\n0\n") {
		t.Errorf("%s\nanswers %q, want the SHA, then 1 9 0 and the time to reset", plain.RedisCLI, out)
	}
	if out := shell(words.RedisCLI); !strings.HasPrefix(out, words.SHA+"\n") || strings.Count(out, "\n") != 7 {
		t.Errorf("%s\nanswers %q, want the SHA and six elements", words.RedisCLI, out)
	}
	const key = "sluice:{it%27s%20%7B192.0.2.1%7D}:login:token_bucket"
	if keys := server.Client().Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != key || plain.Keys[0] != key {
		t.Errorf("keys %q, printed %q: want %q alone", keys, plain.Keys, key)
	}
	if spent := server.Client().HGet(t.Context(), key, "spent").Val(); len(spent) != 8 || spent < "23" || spent > "24000000" {
		t.Errorf("spent %s: want two tokens of 12000000", spent)
	}
}

// What a person reads is what a program reads.
func TestScriptText(t *testing.T) {
	for _, c := range []struct {
		args string
		exit int
		out  string // the beginning of stdout
		err  string // a part of stderr
	}{
		{"token_bucket --limit 5/min --burst 10 --rule login --subject 192.0.2.1", 0,
			"sha     b3e29eede7711792d31af75d7e7d3387b52c0af5\nkeys    sluice:{192.0.2.1}:login:token_bucket\nargv    \"\" 1 12000000 1 10\n" +
				"paste   sluice script token_bucket --reply words | redis-cli -x SCRIPT LOAD && redis-cli EVALSHA b3e29eede7711792d31af75d7e7d3387b52c0af5 1 " +
				"'sluice:{192.0.2.1}:login:token_bucket' '' 1 12000000 1 10\nscript\nlocal word1", ""},
		{"token_bucket --reply plain --limit 5/min", 0, "sha     3e9f1e8900119a321283bcb8d76cf1a7a3e82cb6\nargv    \"\" 1 12000000 1 5\nscript\nlocal word1", ""},
		{"fixed_window --limit 1000/h --rule r --subject global --prefix p --n 3", 0,
			"sha     d37058b82dca71e51608f88c72688909ef89f5fb\nkeys    p:{global}:r:fixed_window\nargv    \"\" 3 3600000000 1000\n", ""},
		{"leaky --reply plain", 0, "local word1, word2, word3 = 'queued', 'ts', 'unit'\n", ""},
		{"leaky --reply plain --json", 0, "{\n  \"algorithm\": \"leaky_bucket\",\n  \"reply\": \"plain\",\n  \"sha\": \"7d4a8d8991f03f2b24522f63a1b1403d53bbf780\",\n  \"script\": ", ""},

		{"token_bucket --burst 10", 2, "", "want --limit"},
		{"token_bucket --limit often", 2, "", "--limit: "},
		{"token_bucket --limit 5/min --burst=-1", 2, "", "Burst -1"},
		{"fixed_window --limit 5/min --burst 3", 2, "", "Burst 3"},
		{"token_bucket --limit 5/min --rule login", 2, "", "--rule and --subject"},
		{"token_bucket --limit 5/min --n=-1", 2, "", "--n -1"},
		{"token_bucket --limit 5/min --prefix {", 2, "", "--prefix"},
		{"token_bucket --reply json", 2, "", "--reply"},
	} {
		var out, stderr bytes.Buffer
		if exit := run(t.Context(), append([]string{"script"}, strings.Fields(c.args)...), &out, &stderr); exit != c.exit {
			t.Errorf("%s: exit %d, want %d: %s", c.args, exit, c.exit, &stderr)
		}
		if !strings.HasPrefix(out.String(), c.out) || c.out == "" && out.Len() > 0 {
			t.Errorf("%s prints\n%.600s\nwant\n%s", c.args, &out, c.out)
		}
		if !strings.Contains(stderr.String(), c.err) || c.err == "" && stderr.Len() > 0 {
			t.Errorf("%s: stderr %q, want %q in it", c.args, &stderr, c.err)
		}
	}
}

// The call that docs/languages.md shows is what the command prints.
func TestScriptDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/languages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n$ sluice ")
	line, want, _ := strings.Cut(rest, "\n")
	want, _, ok := strings.Cut(want, "...\n")
	var out, stderr bytes.Buffer
	if exit := run(t.Context(), strings.Fields(line), &out, &stderr); exit != 0 || !ok || !strings.HasPrefix(out.String(), want) {
		t.Errorf("%s: exit %d, %s\n%.600s\nwant\n%s", line, exit, &stderr, &out, want)
	}
}

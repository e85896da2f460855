package lab

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// docs/lab.md shows what clock, ttl and precision print: their figures are the same in each run.
func TestLabPageShowsWhatIsPrinted(t *testing.T) {
	text, err := os.ReadFile("../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	page := "\n" + string(text)
	must := func(r Result, err error) Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, r := range []Result{
		must(Clock(t.Context(), ClockParams{})),
		must(TTL(t.Context(), TTLParams{Server: realServer})),
		must(Precision(t.Context(), PrecisionParams{Server: realServer})),
	} {
		if !strings.Contains(page, "\n$ sluice lab "+r.Experiment+"\n") {
			t.Errorf("docs/lab.md: no %s", r.Experiment)
		}
		r.Notes, r.Intro = nil, nil
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			// What a key takes differs from server to server.
			if !strings.Contains(page, "\n"+line) && !strings.HasPrefix(line, "key bytes") && !strings.HasPrefix(line, "bytes most") {
				t.Errorf("docs/lab.md: %s now prints\n%s", r.Experiment, line)
			}
		}
	}
}

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluice-go/sluice/lab/play"
	"github.com/sluice-go/sluice/lab/play/engine"
)

// The page's figures under each question are those of the engine in Go, and its answer names the documented ones.
func TestQuestions(t *testing.T) {
	answers := map[string][]string{
		"boundary": {"1,200", "700", "800", "201"},
		"burst":    {"20", "19", "11"},
		"strict":   {"5 + 5", "10 at most"},
		"wait":     {"1.9 s", "20 act", "11 act"},
		"race":     {"40:", "lets 1 pass", "39 writes", "278 commands", "40 commands"},
		"ttl":      {"35 in ten minutes, not 9", "10 keys", "0 are left"},
		"block":    {"20.5 ms", "619 µs"},
		"outage":   {"496", "2,000", "3,000", "deny all 0"},
	}
	for i, preset := range engine.Presets() {
		t.Run(preset.Name, func(t *testing.T) {
			p := open(t, "#question="+preset.Name, desktop)
			if got := eval[string](p, `document.querySelector('.question .count').textContent`); got != fmt.Sprintf("Question %d of 8", i+1) {
				t.Errorf("headed %q", got)
			}
			if got := eval[string](p, `document.querySelector('.answer').textContent`); got != "" {
				t.Errorf("answered before it was asked: %q", got)
			}
			p.press("Show the answer")
			answer := eval[string](p, `document.querySelector('.answer').textContent`)
			for _, want := range answers[preset.Name] {
				if !strings.Contains(answer, want) {
					t.Errorf("%q is not in the answer: %s", want, answer)
				}
			}
			setup, err := engine.Parse(preset.Setup)
			if err != nil {
				t.Fatal(err)
			}
			if setup.View == "race" || setup.View == "block" {
				return
			}
			sim, err := engine.New(setup)
			if err != nil {
				t.Fatal(err)
			}
			sim.Advance(preset.End * 1000)
			for _, l := range sim.Lanes() {
				f := l.Figures
				for name, want := range map[string]int64{"allowed": f.Allowed, "denied": f.Denied, "largest": f.Largest, "largestActing": f.LargestActing, "awayAllowed": f.AwayAllowed} {
					if got := p.figure(l.Name, name); got != strconv.FormatInt(want, 10) {
						t.Errorf("%s: %s %s, want %d", l.Name, name, got, want)
					}
				}
			}
		})
	}
}

// A question that is run, rather than skipped, answers itself when its time has come, and stops.
func TestQuestionRuns(t *testing.T) {
	p := open(t, "#question=race", desktop)
	p.click("#run")
	p.eventually(`document.querySelector('.answer').textContent !== ''`)
	p.eventually(`document.getElementById('run').textContent === 'Run'`)
	p.press("Next question")
	p.eventually(`document.querySelector('.question .count').textContent === 'Question 6 of 8'`)
	if hash := eval[string](p, `location.hash`); hash != "#question=ttl" {
		t.Errorf("address %s", hash)
	}
}

func TestSlidersChangeTheCounts(t *testing.T) {
	p := open(t, "#rate=3000", desktop)
	run := func() (allowed, denied string) {
		p.click("#restart")
		p.click("#run")
		p.eventually(`document.getElementById('clock').textContent >= '0:01.2'`)
		p.click("#run")
		return p.figure("fixed_window", "allowed"), p.figure("fixed_window", "denied")
	}
	if allowed, denied := run(); allowed != "20" || denied == "0" {
		t.Errorf("of 50 a second with 10 a second: %s allowed, %s denied", allowed, denied)
	}
	p.slide("field-count", "100")
	if allowed, denied := run(); allowed == "20" || denied != "0" {
		t.Errorf("of 50 a second with 100 a second: %s allowed, %s denied", allowed, denied)
	}
	if hash := eval[string](p, `location.hash`); hash != "#count=100&rate=3000" {
		t.Errorf("address %s", hash)
	}
	p.slide("field-cost", "5")
	if _, denied := run(); denied == "0" {
		t.Error("none denied at a cost of 5")
	}
	p.click("#run")
	p.slide("field-rate", "1 / min") // on the fly
	p.eventually(`document.getElementById('clock').textContent >= '0:02'`)
	before := p.figure("token_bucket", "allowed")
	p.eventually(`document.getElementById('clock').textContent >= '0:02.5'`)
	if after := p.figure("token_bucket", "allowed"); after != before {
		t.Errorf("%s allowed, then %s, at one request a minute", before, after)
	}
}

func TestBurst(t *testing.T) {
	p := open(t, "#traffic=quiet", desktop)
	p.click("#burst")
	for _, lane := range engine.Algorithms() {
		if allowed, denied := p.figure(lane, "allowed"), p.figure(lane, "denied"); allowed != "10" || denied != "10" {
			t.Errorf("%s: %s allowed and %s denied of a burst of 20, want 10 and 10", lane, allowed, denied)
		}
	}
	panel := eval[string](p, `document.querySelector('.panel').textContent`)
	for _, want := range []string{"Request 20", "10 + 1 = 11, more than 10", "It would pass in 100 ms"} {
		if !strings.Contains(panel, want) {
			t.Errorf("%q is not in the panel: %s", want, panel)
		}
	}
}

func TestOutage(t *testing.T) {
	for outage, want := range map[string]struct{ allowed, why string }{
		"local": {"10", "asks its own bucket"}, "allow": {"20", "everything passes"}, "deny": {"0", "nothing passes"},
	} {
		t.Run(outage, func(t *testing.T) {
			p := open(t, "#traffic=quiet&share=0&instances=1&outage="+outage, desktop)
			p.press("Take Redis away")
			if got := eval[string](p, `document.querySelector('.state-of-redis').textContent`); got != "Redis is away" {
				t.Errorf("it says %q", got)
			}
			p.click("#burst")
			if got := p.figure("token_bucket", "awayAllowed"); got != want.allowed {
				t.Errorf("%s of 20 allowed, want %s", got, want.allowed)
			}
			if panel := eval[string](p, `document.querySelector('.panel').textContent`); !strings.Contains(panel, want.why) {
				t.Errorf("%q is not in the panel: %s", want.why, panel)
			}
			p.press("Bring Redis back")
			p.click("#burst")
			allowed := map[string]string{"local": "10", "allow": "30", "deny": "10"}[outage] // local: Redis is told what was spent
			if got := p.figure("token_bucket", "allowed"); got != allowed {
				t.Errorf("%s allowed in all, want %s", got, allowed)
			}
			if panel := eval[string](p, `document.querySelector('.panel').textContent`); strings.Contains(panel, "Redis is away") {
				t.Error("it still decides without Redis")
			}
		})
	}
}

func TestStepAndBack(t *testing.T) {
	for _, fragment := range []string{"", "#question=race", "#question=outage", "#view=ttl&clients=3"} {
		t.Run(fragment, func(t *testing.T) {
			p := open(t, fragment, desktop)
			panel := func() string { return eval[string](p, `document.querySelector('.panel').textContent`) }
			start := panel()
			var seen []string
			for range 5 {
				p.click("#step")
				seen = append(seen, panel())
			}
			for i := 3; i >= 0; i-- {
				p.click("#back")
				if got := panel(); got != seen[i] {
					t.Fatalf("back to %d:\n%s\nwant\n%s", i, got, seen[i])
				}
			}
			p.click("#step")
			if got := panel(); got != seen[1] {
				t.Errorf("forward again:\n%s\nwant\n%s", got, seen[1])
			}
			p.click("#restart")
			if got := panel(); got != start {
				t.Errorf("restarted:\n%s\nwant\n%s", got, start)
			}
		})
	}
}

func TestKeyboard(t *testing.T) {
	p := open(t, "", desktop)
	key := func(k string) { p.run(chromedp.KeyEvent(k)) }
	key("b")
	if got := p.figure("token_bucket", "denied"); got != "11" {
		t.Errorf("b: %s denied, want 11 of a burst of 20 and the first request", got)
	}
	key("r")
	if got := eval[string](p, `document.getElementById('redis').textContent`); got != "Bring Redis back" {
		t.Errorf("r: the button says %q", got)
	}
	key("0")
	if got := p.figure("token_bucket", "denied"); got != "0" {
		t.Errorf("0: %s denied after a restart", got)
	}
	key("\u0303") // arrow right, as DevTools names it
	if got := p.figure("token_bucket", "allowed"); got != "1" {
		t.Errorf("right: %s allowed, want one step", got)
	}
	key("\u0302")
	if got := p.figure("token_bucket", "allowed"); got != "0" {
		t.Errorf("left: %s allowed, want none", got)
	}
	key(" ")
	p.eventually(`document.getElementById('clock').textContent >= '0:00.1'`)
	key(" ")
	if got := eval[string](p, `document.getElementById('run').textContent`); got != "Run" {
		t.Errorf("space: the button says %q", got)
	}
	// A slider keeps its keys.
	before := eval[string](p, `document.getElementById('clock').textContent`)
	p.run(chromedp.Focus(chromedp.CSS("#field-count")), chromedp.KeyEvent("\u0303"))
	if got := eval[string](p, `document.getElementById('clock').textContent`); got != before {
		t.Errorf("right on a slider steps: %s, then %s", before, got)
	}
	if got := eval[string](p, `document.getElementById('field-count').getAttribute('aria-valuetext')`); got != "12" {
		t.Errorf("right on a slider of 10: %s, want 12", got)
	}
}

// Each view opens with a setup that shows something, and from the middle of a run.
func TestViews(t *testing.T) {
	p := open(t, "", desktop)
	p.click("#step")
	for _, c := range []struct{ view, lane, speaks string }{
		{"race", "lua", "dd[data-lane=lua][data-figure=commands]"},
		{"block", "linear", "dd[data-lane=linear][data-figure=worst]"},
		{"ttl", "fixed_60s", "dd[data-lane=fixed_60s][data-figure=keys]"},
		{"outage", "deny", "dd[data-lane=deny][data-figure=allowed]"},
		{"algorithms", "leaky_bucket", "dd[data-lane=leaky_bucket][data-figure=allowed]"},
	} {
		p.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`(() => { const s = document.getElementById('field-view'); s.value = %q; s.dispatchEvent(new Event('change')); })()`, c.view)))
		p.click("#run")
		p.eventually(fmt.Sprintf(`!['0', '0 µs', undefined].includes(document.querySelector(%q)?.textContent)`, c.speaks))
		if eval[string](p, `document.getElementById('run').textContent`) == "Pause" {
			p.click("#run")
		}
	}
}

// What is wrong in an address is said, and the page works.
func TestAddress(t *testing.T) {
	p := open(t, "#count=0&colour=red", desktop)
	if got := eval[string](p, `document.querySelector('.fault').textContent`); !strings.Contains(got, "engine: setup:") {
		t.Errorf("it says %q", got)
	}
	p.click("#step")
	if got := p.figure("token_bucket", "allowed"); got != "1" {
		t.Errorf("%s allowed after a step", got)
	}
	p.run(chromedp.Evaluate[chromedp.Void](`location.hash = '#view=outage&count=50'; undefined`))
	p.eventually(`document.querySelector('.lane[aria-label="Deny all"]') !== null`)
	if got := eval[string](p, `document.querySelector('.fault').textContent`); got != "" {
		t.Errorf("it still says %q", got)
	}
}

// The exported folder works on a server that knows nothing but files, and calls them all by one type.
func TestExport(t *testing.T) {
	folder := t.TempDir()
	site, err := play.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := site.Export(folder); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Ext(r.URL.Path) == ".wasm" {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		http.StripPrefix("/a/folder", files).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := openAt(t, server.URL+"/a/folder/", "#question=boundary", desktop)
	p.press("Show the answer")
	if got := p.figure("fixed_window", "largest"); got != "1200" {
		t.Errorf("%s, want 1200", got)
	}
}

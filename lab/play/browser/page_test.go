package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/sluice-go/sluice/lab/play"
)

// browser is the one Chromium of all tests; each has a tab of its own.
var browser context.Context

func TestMain(m *testing.M) { os.Exit(withBrowser(m)) }

func withBrowser(m *testing.M) int {
	program := ""
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); name != "" && err == nil {
			program = found
			break
		}
	}
	if program == "" {
		fmt.Fprintln(os.Stderr, "browser: no chromium in PATH: install it (Debian: apt-get install chromium), or name one in CHROMIUM")
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses a sandbox to root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(alloc)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "browser: %s: %v\n", program, err)
		return 1
	}
	browser = ctx
	return m.Run()
}

// tab is a page under test. All that goes to its console as a warning or an error fails the test.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // URL, without a fragment

	mu   sync.Mutex
	said []string
}

type screen struct {
	width, height int64
	dark          bool
}

var desktop = screen{1440, 900, false}

// open opens the playground with a fragment, from a server of its own.
func open(t *testing.T, fragment string, s screen) *tab {
	t.Helper()
	site, err := play.Open()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	return openAt(t, server.URL+"/", fragment, s)
}

func openAt(t *testing.T, base, fragment string, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(stop)
	p := &tab{t: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, line := range p.said {
			t.Errorf("console: %s", line)
		}
	})
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	p.run(
		chromedp.EmulateViewport(s.width, s.height),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, media)
			return err
		}),
		chromedp.Navigate(base+fragment),
		chromedp.WaitReady(chromedp.CSS(`html[data-ready="true"]`)),
	)
	return p
}

// visit goes to another fragment of the same page.
func (p *tab) visit(fragment string) {
	p.t.Helper()
	p.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`location.hash = %q; undefined`, fragment)))
	// The page has loaded it once it has written the shortest text of it: by then the event is over.
	p.eventually(`new Promise((done) => setTimeout(() => done(true), 0))`)
}

func (p *tab) listen(event any) {
	line := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		line = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			line += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			line = string(e.Type)
			for _, a := range e.Args {
				line += " " + string(a.Value) + a.Description
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			line = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if line != "" {
		p.mu.Lock()
		p.said = append(p.said, line)
		p.mu.Unlock()
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// eval is the value of an expression.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// click clicks on what a selector names.
func (p *tab) click(selector chromedp.CSS) {
	p.t.Helper()
	p.run(chromedp.Click(selector))
}

// press clicks on the button with these words.
func (p *tab) press(words string) {
	p.t.Helper()
	if !eval[bool](p, fmt.Sprintf(`(() => { const b = [...document.querySelectorAll('button')].find((b) => b.textContent === %q && !b.hidden); b?.click(); return !!b; })()`, words)) {
		p.t.Fatalf("no button %q", words)
	}
}

// figure is a number of a lane, as the page writes it, without separators.
func (p *tab) figure(lane, name string) string {
	p.t.Helper()
	text := eval[string](p, fmt.Sprintf(`document.querySelector('dd[data-lane=%q][data-figure=%q]').textContent`, lane, name))
	return strings.ReplaceAll(text, ",", "")
}

// slide moves a slider or another control to the value, by its stops: as a reader's hand does, with its events.
func (p *tab) slide(id, words string) {
	p.t.Helper()
	if !eval[bool](p, fmt.Sprintf(`(() => {
		const input = document.getElementById(%q), before = input.value;
		for (let i = 0; i <= Number(input.max); i++) {
			input.value = i;
			input.dispatchEvent(new Event('input', { bubbles: true }));
			if (document.getElementById(%[1]q).getAttribute('aria-valuetext') === %[2]q) return true;
		}
		return false;
	})()`, id, words)) {
		p.t.Fatalf("slider %s has no stop %q", id, words)
	}
}

// eventually waits until an expression is true.
func (p *tab) eventually(expression string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second))); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
}

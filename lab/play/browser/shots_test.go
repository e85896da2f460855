package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// With SHOTS=folder, every question is photographed with its answer: on a desk, dark, on a phone, on a projector.
func TestShots(t *testing.T) {
	folder := os.Getenv("SHOTS")
	if folder == "" {
		t.Skip("SHOTS names no folder")
	}
	screens := map[string]screen{
		"light": desktop, "dark": {1440, 900, true}, "phone": {390, 844, false}, "projector": {1280, 720, false},
	}
	for name, s := range screens {
		for _, question := range []string{"", "boundary", "burst", "strict", "wait", "race", "ttl", "block", "outage"} {
			if name != "light" && question != "boundary" && question != "race" && question != "outage" && question != "" {
				continue
			}
			fragment := "#question=" + question
			if question == "" {
				fragment = ""
			}
			p := open(t, fragment, s)
			if question == "" {
				p.click("#run")
				p.eventually(`document.getElementById('clock').textContent > '0:04'`)
				p.click("#burst")
				p.eventually(`document.getElementById('clock').textContent > '0:06'`)
				p.click("#run")
			} else {
				p.press("Show the answer")
			}
			png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name+"-"+question+".png"), png, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

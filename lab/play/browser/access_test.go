package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/sluice-go/sluice/lab/play/engine"
)

// fragments are addresses that show all that the page has.
func fragments() []string {
	all := []string{"", "#traffic=poisson&clients=5", "#outage=deny"}
	for _, p := range engine.Presets() {
		all = append(all, "#question="+p.Name)
	}
	return all
}

// show brings a page to where most can be seen of it.
func (p *tab) show() {
	p.t.Helper()
	if eval[bool](p, `document.querySelector('.answer') !== null`) {
		p.press("Show the answer")
	}
	if eval[bool](p, `!document.getElementById('redis').hidden`) {
		p.click("#redis")
		p.click("#step")
	}
}

// Everything that one can operate or look at has a name, as the browser tells a screen reader; and every id is one.
func TestEverythingIsNamed(t *testing.T) {
	named := map[string]bool{
		"button": true, "slider": true, "combobox": true, "checkbox": true, "image": true, "link": true, "textbox": true, "region": true, "group": false,
	}
	p := open(t, "", desktop)
	for _, fragment := range fragments() {
		p.visit(fragment)
		p.show()
		var tree accessibility.GetFullAXTreeResult
		p.run(chromedp.Func(func(ctx context.Context, target *chromedp.Target) (err error) {
			tree, err = cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
			return err
		}))
		count := 0
		for _, n := range tree.Nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			role := strings.Trim(string(n.Role.Value), `"`)
			if !named[role] {
				continue
			}
			count++
			if n.Name == nil || strings.Trim(string(n.Name.Value), `" `) == "" {
				t.Errorf("%s: a %s without a name", fragment, role)
			}
		}
		if count < 15 {
			t.Errorf("%s: %d named things: the tree is not what it was", fragment, count)
		}
		if twice := eval[string](p, `(() => {
			const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
			return ids.filter((id, i) => ids.indexOf(id) !== i).join(' ');
		})()`); twice != "" {
			t.Errorf("%s: ids given twice: %s", fragment, twice)
		}
	}
}

// contrast lists the texts whose colour is too near to what is behind it, by WCAG 2.2 AA; the borders and faces of
// controls, of which 3 to 1 is asked; and the inks of the charts.
const contrast = `(() => {
	const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
	const rgba = (color) => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = color;
		canvas.fillRect(0, 0, 1, 1);
		return [...canvas.getImageData(0, 0, 1, 1).data];
	};
	const light = ([r, g, b]) => {
		const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const ratio = (a, b) => {
		const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
		return (x + 0.05) / (y + 0.05);
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = rgba(getComputedStyle(e).backgroundColor);
			if (c[3] === 255) return c;
		}
		return [255, 255, 255, 255];
	};
	const faults = [];
	let texts = 0;
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n = walker.nextNode(); n; n = walker.nextNode()) {
		const e = n.parentElement, style = getComputedStyle(e);
		if (!n.textContent.trim() || !e.getClientRects().length || style.visibility === 'hidden') continue;
		texts++;
		const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
		const r = ratio(rgba(style.color), behind(e));
		if (r < (large ? 3 : 4.5)) faults.push(r.toFixed(2) + ' ' + n.textContent.trim().slice(0, 40));
	}
	for (const e of document.querySelectorAll('button, select')) {
		if (!e.getClientRects().length) continue;
		const style = getComputedStyle(e), outside = behind(e.parentElement);
		const r = Math.max(ratio(rgba(style.borderTopColor), outside), ratio(behind(e), outside));
		if (r < 3) faults.push(r.toFixed(2) + ' border of ' + e.textContent.slice(0, 30));
	}
	const root = getComputedStyle(document.documentElement), card = rgba(root.getPropertyValue('--card'));
	for (const ink of ['--allowed', '--delayed', '--denied', '--level', '--accent', '--muted', '--edge']) {
		const r = ratio(rgba(root.getPropertyValue(ink).trim()), card);
		if (r < 3) faults.push(r.toFixed(2) + ' ink ' + ink);
	}
	return { faults, texts, paper: root.getPropertyValue('--paper').trim() };
})()`

func TestContrast(t *testing.T) {
	papers := map[string]bool{}
	for _, dark := range []bool{false, true} {
		p := open(t, "", screen{1440, 900, dark})
		for _, fragment := range fragments() {
			p.visit(fragment)
			p.show()
			checkContrast(t, p, fmt.Sprintf("dark %v, %s", dark, fragment), papers)
		}
	}
	if len(papers) != 2 {
		t.Errorf("papers %v, want one for each theme", papers)
	}
	// The reader's own choice goes before the system's.
	p := open(t, "", screen{1440, 900, true})
	p.run(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.getElementById('theme'); s.value = 'light'; s.dispatchEvent(new Event('change')); })()`))
	own := map[string]bool{}
	checkContrast(t, p, "light by choice", own)
	if !own["#f6f7f5"] {
		t.Errorf("light by choice on a dark system has paper %v", own)
	}
}

func checkContrast(t *testing.T, p *tab, where string, papers map[string]bool) {
	t.Helper()
	found := eval[struct {
		Faults []string `json:"faults"`
		Texts  int      `json:"texts"`
		Paper  string   `json:"paper"`
	}](p, contrast)
	papers[found.Paper] = true
	for _, fault := range found.Faults {
		t.Errorf("%s: %s", where, fault)
	}
	if found.Texts < 40 {
		t.Errorf("%s: %d texts looked at", where, found.Texts)
	}
}

// On a phone, and on a narrow one, nothing sticks out, and every control is as large as a finger needs (WCAG 2.2: 24 px).
func TestPhone(t *testing.T) {
	for _, width := range []int64{390, 320} {
		p := open(t, "", screen{width, 800, false})
		for _, fragment := range fragments() {
			p.visit(fragment)
			p.show()
			p.run(chromedp.Evaluate[chromedp.Void](`document.querySelector('details.setup').open = true; undefined`))
			if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > int(width) {
				t.Errorf("%s on %d px: %d px wide", fragment, width, wide)
			}
			if small := eval[[]string](p, `[...document.querySelectorAll('button, select, input[type=range], summary')]
				.filter((e) => e.getClientRects().length && e.getBoundingClientRect().height < 24).map((e) => e.id || e.textContent)`); len(small) > 0 {
				t.Errorf("%s on %d px: lower than 24 px: %v", fragment, width, small)
			}
		}
	}
}

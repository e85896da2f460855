package lab

import (
	"fmt"
	"io"
	"strings"
)

// Panels is a small plot for each of some things over one scale of time: what each let through.
type Panels struct {
	Title, Caption string
	Y              string  // what is counted, such as "requests per second"
	From, To       float64 // seconds
	Limit          float64
	LimitName      string // "limit", if left out
	Panels         []Panel
}

// Panel is one thing's counts in equal parts of the time.
type Panel struct {
	Name, Note string
	Admitted   []float64 // bars, hatched above the limit
	Denied     []float64 // open bars upon them; nil: none
	Acting     []float64 // a line: what acted, where that may be later than it was admitted; nil: none
}

const (
	panelHeight = 74
	panelGap    = 34

	// mostDenied is how far the scale reaches, in times of what is let through, so that many denials don't hide it.
	mostDenied = 4
)

// WriteSVG draws the plots below each other, all on one scale.
func (p Panels) WriteSVG(w io.Writer) error {
	most, through, acting := p.Limit, p.Limit, false
	var said []string
	for _, panel := range p.Panels {
		for i, v := range panel.Admitted {
			through = max(through, v)
			if i < len(panel.Denied) {
				v += panel.Denied[i]
			}
			most = max(most, v)
		}
		for _, v := range panel.Acting {
			most, acting = max(most, v), true
		}
		said = append(said, fmt.Sprintf("%s: %s", spaced(panel.Name), panel.Note))
	}
	if cut := mostDenied * through; cut > 0 && most > cut {
		most = cut
		p.Caption += " Denials above the scale are cut off."
	}
	height := chartTop + 46 + len(p.Panels)*(panelHeight+panelGap) + 22
	c := newCanvas(height, p.Title, p.Caption, strings.Join(said, "; ")+".")
	x := newScale(p.From, p.To, 66, chartWidth-chartRight, false)
	c.f(`<rect class="within" x="16" y="66" width="16" height="11"/><text x="38" y="76">admitted</text>`+
		`<rect %s x="110" y="66" width="16" height="11"/><text x="132" y="76">above the limit</text>`+
		`<rect class="denied" x="240" y="66" width="16" height="11"/><text x="262" y="76">denied</text>`, c.over())
	if acting {
		c.f(`<path class="acting" d="M326 72h20"/><text x="352" y="76">acting</text>`)
	}
	if p.Limit > 0 {
		c.f(`<path class="limit" d="M412 72h24"/><text x="442" y="76">%s %s</text>`, text(limitName(p.LimitName)), shown(p.Limit))
	}
	c.f("\n")
	top := float64(chartTop + 46)
	for _, panel := range p.Panels {
		y := newScale(0, most, top+panelHeight, top, false)
		c.label("name", x.start, top-7, "start", spaced(panel.Name))
		c.label("", x.end, top-7, "end", panel.Note)
		at := func(i, of int) float64 { return x.start + (x.end-x.start)*float64(i)/float64(of) }
		bar := func(path *strings.Builder, i, of int, from, to float64) {
			if to > from {
				width, height := max(0.6, at(i+1, of)-at(i, of)-0.8), y.at(from)-y.at(to)
				fmt.Fprintf(path, "M%.1f %.1fh%.1fv%.1fh-%.1fz", at(i, of), y.at(to), width, height, width)
			}
		}
		var inside, over, denied strings.Builder
		for i, v := range panel.Admitted {
			within := v
			if p.Limit > 0 {
				within = min(v, p.Limit)
			}
			bar(&inside, i, len(panel.Admitted), 0, within)
			bar(&over, i, len(panel.Admitted), within, v)
			if i < len(panel.Denied) {
				bar(&denied, i, len(panel.Admitted), v, v+panel.Denied[i])
			}
		}
		c.f(`<path class="within" d="%s"/><path %s d="%s"/><path class="denied" d="%s"/>`, inside.String(), c.over(), over.String(), denied.String())
		if n := len(panel.Acting); n > 0 {
			var d strings.Builder
			for i, v := range panel.Acting {
				fmt.Fprintf(&d, "%s%.1f %.1fH%.1f", [2]string{"L", "M"}[b2i(i == 0)], at(i, n), y.at(v), at(i+1, n))
			}
			c.f("\n"+`<path class="acting" d="%s"/>`, d.String())
		}
		if p.Limit > 0 {
			c.f("\n"+`<line class="limit" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.start, y.at(p.Limit), x.end, y.at(p.Limit))
		}
		c.f("\n"+`<path class="axis" d="M%.1f %.1f V%.1f H%.1f"/>`+"\n", x.start, top, y.start, x.end)
		for _, v := range []float64{0, most} {
			c.label("tick", x.start-6, y.at(v)+4, "end", tickText(v))
		}
		top += panelHeight + panelGap
	}
	bottom := top - panelGap
	for _, v := range x.ticks() {
		c.f(`<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.at(v), bottom, x.at(v), bottom+4)
		c.label("tick", x.at(v), bottom+17, "middle", tickText(v))
	}
	c.label("", (x.start+x.end)/2, bottom+36, "middle", "seconds since the start")
	middle := (float64(chartTop+46) + bottom) / 2
	c.f(`<text x="16" y="%.1f" text-anchor="middle" transform="rotate(-90 16 %.1f)">%s</text>`+"\n", middle, middle, text(p.Y))
	return c.end(w)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

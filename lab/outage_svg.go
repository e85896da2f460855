package lab

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// The drawing's measures, in pixels.
const (
	svgWidth  = 860
	svgLeft   = 66 // of the plots
	svgRight  = 20
	svgHead   = 124
	svgPlot   = 84 // height of a plot
	svgGap    = 38 // between two plots: the lower one's name
	svgFoot   = 48
	svgInside = svgWidth - svgLeft - svgRight
)

// WriteSVG draws what each variant admitted per second, one plot each, all on one scale.
func (r OutageResult) WriteSVG(w io.Writer) error {
	p := &r.Params
	height := svgHead + len(r.Results)*(svgPlot+svgGap) + svgFoot - svgGap/2
	d := &drawing{params: p, top: r.most()}
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">`+"\n", svgWidth, height, svgWidth, height)
	title := fmt.Sprintf("%d instances under one limit of %v, while Redis goes and comes", p.Instances, p.Limit)
	d.f("<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", text(title), text(r.described()))
	d.f("<style>%s</style>\n", chartStyle)
	d.f(`<defs><pattern id="over" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="over" width="6" height="6"/><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>` + "\n")
	d.f(`<rect class="page" width="%d" height="%d"/>`+"\n", svgWidth, height)
	d.f(`<text class="title" x="%d" y="30">%s</text>`+"\n", svgLeft, text(title))
	d.f(`<text x="%d" y="50">%s</text>`+"\n", svgLeft, text(fmt.Sprintf("Demand %g times the limit%s, outages by %s, on %s. The first second has the burst.", p.Demand, p.skewed(), p.How, r.Server)))
	d.key(72)
	y := svgHead
	for _, v := range r.Results {
		d.plot(y, v)
		y += svgPlot + svgGap
	}
	d.times(y - svgGap)
	d.f("</svg>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

// most is the upper end of the scale: the most admitted in a second, rounded up to two digits.
func (r OutageResult) most() float64 {
	most := r.Params.rate()
	for _, v := range r.Results {
		for _, n := range v.PerSecond {
			most = max(most, float64(n))
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(most))-1)
	return math.Ceil(most/unit) * unit
}

// described says in words what the drawing shows.
func (r OutageResult) described() string {
	var parts []string
	for _, v := range r.Results {
		parts = append(parts, fmt.Sprintf("%s: %.2f of the bound", v.Name, v.Ratio))
	}
	return fmt.Sprintf("Redis away %s. Admitted: %s.", list(r.Params.Outages()), strings.Join(parts, "; "))
}

// drawing is an SVG in the making.
type drawing struct {
	strings.Builder
	params *OutageParams
	top    float64 // units a second at a plot's upper edge
}

func (d *drawing) f(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// key explains the marks, at a height.
func (d *drawing) key(y int) {
	x := svgLeft
	mark := func(shape, what string, width int) {
		d.f(`<g transform="translate(%d %d)">%s</g>`, x, y, shape)
		d.f(`<text x="%d" y="%d">%s</text>`+"\n", x+28, y+10, text(what))
		x += width
	}
	mark(`<rect class="within" width="20" height="11"/>`, "admitted", 112)
	mark(`<rect fill="url(#over)" width="20" height="11"/>`, "above the limit", 144)
	mark(`<line class="limit" y1="5" x2="20" y2="5"/>`, fmt.Sprintf("limit, %s per second", number(d.params.rate())), 186)
	mark(`<rect class="away" width="20" height="11"/>`, "Redis away", 110)
}

func (d *drawing) x(t time.Duration) float64 {
	return svgLeft + svgInside*t.Seconds()/d.params.Duration.Seconds()
}

// plot draws one variant below a height.
func (d *drawing) plot(top int, v OutageVariant) {
	bottom := float64(top + svgPlot)
	at := func(n float64) float64 { return bottom - svgPlot*n/d.top }
	rate := d.params.rate()
	d.f(`<text class="name" x="%d" y="%d">%s</text>`+"\n", svgLeft, top-7, text(v.Name))
	d.f(`<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", svgWidth-svgRight, top-7,
		text(fmt.Sprintf("%.2f of the bound · worst second %d · lost %.0f", v.Ratio, v.WorstSecond, v.Lost)))
	for _, o := range d.params.Outages() {
		d.f(`<rect class="away" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", d.x(o.From), top, d.x(o.To)-d.x(o.From), svgPlot)
	}
	for s, n := range v.PerSecond {
		from := time.Duration(s) * time.Second
		x := d.x(from)
		width := max(0.5, d.x(min(from+time.Second, d.params.Duration))-x-1)
		within := min(float64(n), rate)
		d.f(`<rect class="within" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", x, at(within), width, bottom-at(within))
		if over := float64(n); over > rate {
			d.f(`<rect fill="url(#over)" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", x, at(over), width, at(rate)-at(over))
		}
	}
	d.f(`<line class="limit" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", svgLeft, at(rate), svgWidth-svgRight, at(rate))
	d.f(`<path class="axis" fill="none" d="M%d %d V%.0f H%d"/>`+"\n", svgLeft, top, bottom, svgWidth-svgRight)
	ticks := []float64{0, rate, d.top}
	if d.top < 1.3*rate {
		ticks = ticks[:2]
	}
	for _, n := range ticks {
		d.f(`<text class="tick" x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n", svgLeft-6, at(n)+4, n)
	}
}

// times draws the scale of time below a height, and what both scales are of.
func (d *drawing) times(y int) {
	step := time.Second
	for _, s := range []time.Duration{2, 5, 10, 30, 60, 300, 600} {
		if d.params.Duration/step <= 15 {
			break
		}
		step = s * time.Second
	}
	for t := time.Duration(0); t <= d.params.Duration; t += step {
		d.f(`<line class="axis" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, d.x(t), y, d.x(t), y+4)
		d.f(`<text class="tick" x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", d.x(t), y+17, t.Seconds())
	}
	d.f(`<text x="%d" y="%d" text-anchor="middle">seconds since the start</text>`+"\n", svgLeft+svgInside/2, y+36)
	middle := (svgHead + y) / 2
	d.f(`<text x="18" y="%d" text-anchor="middle" transform="rotate(-90 18 %d)">admitted per second</text>`+"\n", middle, middle)
}

// text is s as XML has it.
func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

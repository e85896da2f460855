package lab

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Chart is a drawing that stands alone: light and dark, named and described for those who don't see it, and with no
// meaning that hangs on a colour.
type Chart interface {
	WriteSVG(w io.Writer) error
}

// ChartFunc is a function as a Chart.
type ChartFunc func(w io.Writer) error

// WriteSVG calls f.
func (f ChartFunc) WriteSVG(w io.Writer) error { return f(w) }

// Measures of all charts, in pixels.
const (
	chartWidth = 860
	chartRight = 24
	chartTop   = 64 // of what is below the title and the caption
	letter     = 8  // about the width of one in a name
	rowHeight  = 28
)

// chartStyle has the colours of a light and of a dark page. No meaning hangs on a colour: what is above the limit is
// hatched, limits are dashed, curves have dashes of their own, marks have shapes.
const chartStyle = `
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #444c56 }
.title { font-size: 17px; font-weight: 600; fill: #1f2328 }
.name { font-size: 13px; font-weight: 600; fill: #1f2328 }
.tick { font-size: 11px }
.page { fill: #ffffff } .away { fill: #d0d5db } .axis { stroke: #6e7781; fill: none } .grid { stroke: #d0d5db } .limit { stroke: #1f2328; stroke-dasharray: 6 4; fill: none }
.within { fill: #2f81c7 } .over { fill: #c2410c } .hatch { stroke: #ffffff; stroke-width: 2 }
.denied { fill: none; stroke: #c2410c } .acting { fill: none; stroke: #1f2328; stroke-width: 1.5 } .delayed { fill: #ffffff; stroke: #2f81c7; stroke-width: 1.5 }
.s0, .s1, .s2, .s3, .s4, .s5 { fill: none; stroke-width: 2 }
.s0 { stroke: #2f81c7 } .s1 { stroke: #c2410c; stroke-dasharray: 9 3 } .s2 { stroke: #1a7f37; stroke-dasharray: 2 3 }
.s3 { stroke: #8250df; stroke-dasharray: 10 3 2 3 } .s4 { stroke: #57606a; stroke-dasharray: 5 5 } .s5 { stroke: #9a6700; stroke-dasharray: 1 5 }
@media (prefers-color-scheme: dark) {
text { fill: #aeb6c0 } .title, .name { fill: #f0f3f6 }
.page { fill: #14181d } .away { fill: #3a424c } .axis { stroke: #8b949e } .grid { stroke: #3a424c } .limit { stroke: #f0f3f6 }
.within { fill: #58a6ee } .over { fill: #fb8c4a } .hatch { stroke: #14181d }
.denied { stroke: #fb8c4a } .acting { stroke: #f0f3f6 } .delayed { fill: #14181d; stroke: #58a6ee }
.s0 { stroke: #58a6ee } .s1 { stroke: #fb8c4a } .s2 { stroke: #56d364 } .s3 { stroke: #bc8cff } .s4 { stroke: #aeb6c0 } .s5 { stroke: #e3b341 }
}
`

// canvas is an SVG in the making.
type canvas struct {
	strings.Builder
	id string // begins the ids of this drawing, so that a page may hold several
}

// newCanvas begins a drawing. The description says in words what it shows.
func newCanvas(height int, title, caption, description string) *canvas {
	c := &canvas{id: slug(title)}
	c.f(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="%s-title %s-desc">`+"\n",
		chartWidth, height, chartWidth, height, c.id, c.id)
	c.f("<title id=\"%s-title\">%s</title>\n<desc id=\"%s-desc\">%s</desc>\n", c.id, text(title), c.id, text(description))
	c.f("<style>%s</style>\n", chartStyle)
	c.f(`<defs><pattern id="%s-over" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
		`<rect class="over" width="6" height="6"/><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>`+"\n", c.id)
	c.f(`<rect class="page" width="%d" height="%d"/>`+"\n", chartWidth, height)
	c.f(`<text class="title" x="16" y="28">%s</text>`+"\n", text(title))
	c.f(`<text x="16" y="48">%s</text>`+"\n", text(caption))
	return c
}

func (c *canvas) f(format string, args ...any) { fmt.Fprintf(c, format, args...) }

// end writes the drawing.
func (c *canvas) end(w io.Writer) error {
	c.f("</svg>\n")
	_, err := io.WriteString(w, c.String())
	return err
}

// over is how an area above the limit is filled.
func (c *canvas) over() string { return fmt.Sprintf(`fill="url(#%s-over)"`, c.id) }

// label writes text at a place; anchor is start, middle or end.
func (c *canvas) label(class string, x, y float64, anchor, s string) {
	c.f(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, text(s))
}

// slug is a title as an id.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return "c-" + strings.Trim(b.String(), "-")
}

// scale maps values to pixels.
type scale struct {
	from, to       float64 // values
	start, end     float64 // pixels
	log            bool
	tickFrom, step float64 // of a linear scale
}

// newScale has round ends. A linear scale begins at from; a logarithmic one at the power of ten below, at least 1e-6.
func newScale(from, to, start, end float64, log bool) scale {
	s := scale{from: from, to: to, start: start, end: end, log: log}
	if log {
		s.from = math.Pow(10, math.Floor(math.Log10(max(from, 1e-6))+1e-9))
		s.to = max(10*s.from, math.Pow(10, math.Ceil(math.Log10(max(to, 1e-6))-1e-9)))
		return s
	}
	if !(to > from) {
		s.to = from + 1
	}
	s.step = roundStep((s.to - s.from) / 5)
	s.tickFrom = math.Ceil(s.from/s.step-1e-9) * s.step
	return s
}

// roundUp makes a linear scale end on a tick.
func (s scale) roundUp() scale {
	if !s.log {
		s.to = math.Ceil(s.to/s.step-1e-9) * s.step
	}
	return s
}

// roundStep is the 1, 2 or 5 times a power of ten that is not below x.
func roundStep(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*unit >= x*(1-1e-9) {
			return n * unit
		}
	}
	return 10 * unit
}

// at is where a value is drawn: within the scale.
func (s scale) at(v float64) float64 {
	part := (v - s.from) / (s.to - s.from)
	if s.log {
		part = math.Log(max(v, s.from)/s.from) / math.Log(s.to/s.from)
	}
	return s.start + (s.end-s.start)*min(1, max(0, part))
}

// ticks are the values that are written at the scale.
func (s scale) ticks() (ticks []float64) {
	if s.log {
		for v := s.from; v <= s.to*1.0001; v *= 10 {
			ticks = append(ticks, v)
		}
		return ticks
	}
	for i := 0; s.tickFrom+float64(i)*s.step <= s.to+s.step*1e-6; i++ {
		ticks = append(ticks, s.tickFrom+float64(i)*s.step)
	}
	return ticks
}

// tickText is a tick's value: 20000 rather than 2e+04.
func tickText(v float64) string {
	if math.Abs(v) >= 1 && math.Abs(v) < 1e7 || v == 0 {
		return shown(math.Round(v*1e4) / 1e4)
	}
	return shown(v)
}

// nameWidth is the room that the longest of the names needs.
func nameWidth(names ...string) float64 {
	most := 0
	for _, n := range names {
		most = max(most, utf8.RuneCountInString(n))
	}
	return float64(most*letter + 24)
}

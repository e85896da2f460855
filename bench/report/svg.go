package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Measures of all charts, in pixels.
const (
	width     = 860
	right     = 24
	top       = 64 // of what is below the title and the caption
	letter    = 7  // about the width of one
	rowHeight = 24
)

// style has the colours of a light and of a dark page. Ours is told from others by weight and by a hatch-free fill, not
// by colour alone.
const style = `
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #444c56 }
.title { font-size: 17px; font-weight: 600; fill: #1f2328 } .name, .ours { font-weight: 600; fill: #1f2328 } .tick { font-size: 11px }
.page { fill: #ffffff } .axis { stroke: #6e7781; fill: none } .grid { stroke: #d0d5db }
.bar { fill: #b4bcc6 } .barours { fill: #2f81c7 }
.s0, .s1, .s2, .s3, .s4, .s5 { fill: none; stroke-width: 2 }
.s0 { stroke: #2f81c7; stroke-width: 3.5 } .s1 { stroke: #c2410c; stroke-dasharray: 9 3 } .s2 { stroke: #1a7f37; stroke-dasharray: 2 3 }
.s3 { stroke: #8250df; stroke-dasharray: 10 3 2 3 } .s4 { stroke: #57606a; stroke-dasharray: 5 5 } .s5 { stroke: #9a6700; stroke-dasharray: 1 5 }
@media (prefers-color-scheme: dark) {
text { fill: #aeb6c0 } .title, .name, .ours { fill: #f0f3f6 }
.page { fill: #14181d } .axis { stroke: #8b949e } .grid { stroke: #3a424c } .bar { fill: #57606a } .barours { fill: #58a6ee }
.s0 { stroke: #58a6ee } .s1 { stroke: #fb8c4a } .s2 { stroke: #56d364 } .s3 { stroke: #bc8cff } .s4 { stroke: #aeb6c0 } .s5 { stroke: #e3b341 }
}
`

// canvas is an SVG in the making.
type canvas struct{ strings.Builder }

// newCanvas begins a drawing. The description says in words what it shows.
func newCanvas(height int, title, caption, description string) *canvas {
	c := &canvas{}
	c.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title description">`+"\n", width, height, width, height)
	c.f(`<title id="title">%s</title>`+"\n"+`<desc id="description">%s</desc>`+"\n", html.EscapeString(title), html.EscapeString(description))
	c.f("<style>%s</style>\n"+`<rect class="page" width="%d" height="%d"/>`+"\n", style, width, height)
	c.label("title", 16, 28, "start", title)
	c.label("", 16, 48, "start", caption)
	return c
}

func (c *canvas) f(format string, args ...any) { fmt.Fprintf(c, format, args...) }

func (c *canvas) label(class string, x, y float64, anchor, text string) {
	c.f(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(text))
}

// end writes the drawing.
func (c *canvas) end(w io.Writer) error {
	_, err := io.WriteString(w, c.String()+"</svg>\n")
	return err
}

// scale maps values to pixels, by their logarithm or linearly.
type scale struct {
	from, to   float64 // values
	start, end float64 // pixels
	linear     bool
}

// logScale begins and ends at powers of ten around the values, or at the values themselves if exact.
func logScale(values []float64, start, end float64, exact bool) scale {
	from, to := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 {
			from, to = min(from, v), max(to, v)
		}
	}
	if to == 0 {
		from, to = 1, 10
	}
	if !exact {
		from, to = math.Pow(10, math.Floor(math.Log10(from)+1e-9)), math.Pow(10, math.Ceil(math.Log10(to)-1e-9))
	}
	if to <= from {
		to = from * 10
	}
	return scale{from: from, to: to, start: start, end: end}
}

// linearScale goes from 0 to a round number.
func linearScale(values []float64, start, end float64) scale {
	most := max(1e-9, slices.Max(append(values, 0)))
	step := roundStep(most / 5)
	return scale{to: math.Ceil(most/step-1e-9) * step, start: start, end: end, linear: true}
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
	part := v / s.to
	if !s.linear {
		part = math.Log(max(v, s.from)/s.from) / math.Log(s.to/s.from)
	}
	return s.start + (s.end-s.start)*min(1, part)
}

// ticks are the powers of ten on the scale, on a linear one about five values.
func (s scale) ticks() (ticks []float64) {
	if s.linear {
		step := roundStep(s.to / 5)
		for i := 0; float64(i)*step <= s.to*1.0001; i++ {
			ticks = append(ticks, float64(i)*step)
		}
		return ticks
	}
	for v := math.Pow(10, math.Ceil(math.Log10(s.from)-1e-9)); v <= s.to*1.0001; v *= 10 {
		ticks = append(ticks, v)
	}
	return ticks
}

// tick is a value as it stands at a scale.
func tick(v float64) string {
	if v == math.Trunc(v) {
		return commas(int64(v))
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// nameWidth is the room that the longest of the names needs.
func nameWidth(names []string) float64 {
	most := 0
	for _, n := range names {
		most = max(most, utf8.RuneCountInString(n))
	}
	return float64(most*letter + 28)
}

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// series is a curve through points in order of x, all positive.
type series struct {
	name string
	x, y []float64
}

const linesHeight = 280

// drawLines draws curves on logarithmic scales, each with a dash of its own. The first one stands out.
func drawLines(w io.Writer, title, caption, xUnit, yUnit string, curves []series) error {
	var xs, ys []float64
	var said []string
	for _, s := range curves {
		xs, ys = append(xs, s.x...), append(ys, s.y...)
		var parts []string
		for i := range s.x {
			parts = append(parts, fmt.Sprintf("%s at %s", number(s.y[i]), tick(s.x[i])))
		}
		said = append(said, s.name+": "+strings.Join(parts, ", "))
	}
	keyRows := (len(curves) + 2) / 3
	upper := float64(top + keyRows*20 + 8)
	bottom := upper + linesHeight
	c := newCanvas(int(bottom)+48, title, caption, strings.Join(said, "; ")+".")
	x := logScale(xs, 90, width-right-10, true)
	y := logScale(ys, bottom, upper, false)
	for _, v := range y.ticks() {
		c.f(`<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.start, y.at(v), x.end, y.at(v))
		c.label("tick", x.start-6, y.at(v)+4, "end", tick(v))
	}
	var marked []float64
	for _, v := range xs {
		if !slices.Contains(marked, v) {
			marked = append(marked, v)
			c.f(`<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.at(v), bottom, x.at(v), bottom+4)
			c.label("tick", x.at(v), bottom+17, "middle", tick(v))
		}
	}
	c.f(`<path class="axis" d="M%.1f %.1f V%.1f H%.1f"/>`+"\n", x.start, upper, bottom, x.end)
	c.label("", (x.start+x.end)/2, bottom+36, "middle", xUnit)
	middle := (upper + bottom) / 2
	c.f(`<text x="18" y="%.1f" text-anchor="middle" transform="rotate(-90 18 %.1f)">%s</text>`+"\n", middle, middle, yUnit)
	for i, s := range curves {
		class := fmt.Sprintf("s%d", i%6)
		var d strings.Builder
		for k := range s.x {
			fmt.Fprintf(&d, "%c%.1f %.1f ", "ML"[min(k, 1)], x.at(s.x[k]), y.at(s.y[k]))
		}
		c.f(`<path class="%s" d="%s"/>`+"\n", class, strings.TrimSpace(d.String()))
		kx, ky := 16+float64(i%3)*275, float64(top+i/3*20)
		c.f(`<path class="%s" d="M%.1f %.1f h34"/>`+"\n", class, kx, ky+6)
		last := ""
		if n := len(s.y); n > 0 {
			last = ", at the end " + number(s.y[n-1])
		}
		c.label("", kx+42, ky+10, "start", s.name+last)
	}
	return c.end(w)
}

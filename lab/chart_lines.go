package lab

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Lines is curves over one scale of x.
type Lines struct {
	Title, Caption string
	X, Y           string // what the scales are of, with the unit
	Log            bool   // a logarithmic scale of y
	Limit          float64
	LimitName      string // "limit", if left out
	Series         []Series
}

// Series is the points of one curve, in order of X. X and Y have the same length.
type Series struct {
	Name string
	X, Y []float64
	Step bool // a value holds until the next
}

const linesHeight = 260

// WriteSVG draws the curves, each with a dash of its own, and their names with their last values.
func (l Lines) WriteSVG(w io.Writer) error {
	var said []string
	fromX, toX, fromY, toY := math.Inf(1), math.Inf(-1), 0.0, l.Limit
	if l.Log {
		fromY = math.Inf(1)
	}
	for _, s := range l.Series {
		for i := range min(len(s.X), len(s.Y)) {
			fromX, toX, toY = min(fromX, s.X[i]), max(toX, s.X[i]), max(toY, s.Y[i])
			if l.Log && s.Y[i] > 0 {
				fromY = min(fromY, s.Y[i])
			}
		}
		said = append(said, fmt.Sprintf("%s ends at %s", spaced(s.Name), shown(s.last())))
	}
	if fromX > toX {
		fromX, toX = 0, 1
	}
	if math.IsInf(fromY, 1) {
		fromY = 1
	}
	rows := (len(l.Series) + 2) / 3
	top := float64(chartTop + rows*20 + 8)
	bottom := top + linesHeight
	c := newCanvas(int(bottom)+48, l.Title, l.Caption, strings.Join(said, "; ")+".")
	x := newScale(fromX, toX, 70, chartWidth-chartRight, false)
	y := newScale(fromY, toY, bottom, top, l.Log).roundUp()
	for _, v := range y.ticks() {
		c.f(`<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.start, y.at(v), x.end, y.at(v))
		c.label("tick", x.start-6, y.at(v)+4, "end", tickText(v))
	}
	for _, v := range x.ticks() {
		c.f(`<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.at(v), bottom, x.at(v), bottom+4)
		c.label("tick", x.at(v), bottom+17, "middle", tickText(v))
	}
	c.f(`<path class="axis" d="M%.1f %.1f V%.1f H%.1f"/>`+"\n", x.start, top, bottom, x.end)
	c.label("", (x.start+x.end)/2, bottom+36, "middle", l.X)
	middle := (top + bottom) / 2
	c.f(`<text x="18" y="%.1f" text-anchor="middle" transform="rotate(-90 18 %.1f)">%s</text>`+"\n", middle, middle, text(l.Y))
	if l.Limit > 0 {
		c.f(`<line class="limit" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", x.start, y.at(l.Limit), x.end, y.at(l.Limit))
		c.label("", x.start+6, y.at(l.Limit)-5, "start", fmt.Sprintf("%s %s", limitName(l.LimitName), shown(l.Limit)))
	}
	for i, s := range l.Series {
		class := fmt.Sprintf("s%d", i%6)
		c.f(`<path class="%s" d="%s"/>`+"\n", class, s.path(x, y))
		kx, ky := 16+float64(i%3)*275, float64(chartTop+i/3*20)
		c.f(`<path class="%s" d="M%.1f %.1f h34"/>`+"\n", class, kx, ky+6)
		c.label("", kx+42, ky+10, "start", fmt.Sprintf("%s, at the end %s", spaced(s.Name), shown(s.last())))
	}
	return c.end(w)
}

func (s Series) last() float64 {
	if n := min(len(s.X), len(s.Y)); n > 0 {
		return s.Y[n-1]
	}
	return math.NaN()
}

// path is the curve, without the points that would not be seen.
func (s Series) path(x, y scale) string {
	var points [][2]float64
	for i := range min(len(s.X), len(s.Y)) {
		p := [2]float64{x.at(s.X[i]), y.at(s.Y[i])}
		if n := len(points); n > 0 && s.Step && p[1] != points[n-1][1] {
			points = append(points, [2]float64{p[0], points[n-1][1]})
		}
		points = append(points, p)
	}
	var b strings.Builder
	for i, p := range thinned(points) {
		fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(i, 1)], p[0], p[1])
	}
	return b.String()
}

// unseen is how far, in pixels, a point may lie from a line that passes it over.
const unseen = 0.3

// thinned is a line through some of the points, which no point is farther from than unseen.
func thinned(points [][2]float64) [][2]float64 {
	if len(points) < 3 {
		return points
	}
	// Spans are looked at from left to right; one that a straight line does not do for is cut at its farthest point.
	kept := points[:1:1]
	ends := []int{len(points) - 1}
	for from := 0; len(ends) > 0; {
		to := ends[len(ends)-1]
		at, most := 0, unseen
		for i := from + 1; i < to; i++ {
			if d := distance(points[i], points[from], points[to]); d > most {
				at, most = i, d
			}
		}
		if at > 0 {
			ends = append(ends, at)
			continue
		}
		kept = append(kept, points[to])
		from, ends = to, ends[:len(ends)-1]
	}
	return kept
}

// distance is how far p is from the line from a to b.
func distance(p, a, b [2]float64) float64 {
	dx, dy := b[0]-a[0], b[1]-a[1]
	length := dx*dx + dy*dy
	part := 0.0
	if length > 0 {
		part = min(1, max(0, ((p[0]-a[0])*dx+(p[1]-a[1])*dy)/length))
	}
	return math.Hypot(p[0]-a[0]-part*dx, p[1]-a[1]-part*dy)
}

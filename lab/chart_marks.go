package lab

import (
	"fmt"
	"io"
	"strings"
)

// Kind says how a request ended.
type Kind uint8

const (
	Allowed Kind = iota
	Delayed      // allowed, and held
	Denied
)

// Marks is a line of marks for each of some things: a request each, at its time.
type Marks struct {
	Title, Caption string
	From, To       float64 // seconds
	Rows           []MarkRow
}

// MarkRow is the requests of one thing.
type MarkRow struct {
	Name  string
	Note  string // beside the line, such as a count
	Marks []Mark
}

// Mark is a request.
type Mark struct {
	At   float64 // seconds
	Kind Kind
}

const markHeight = 46

// WriteSVG draws what is allowed as a full bar upwards, what is held as an open circle where it acts, and what is denied as
// a line downwards, longer for several at one place. Others at one place have their number beside them.
func (m Marks) WriteSVG(w io.Writer) error {
	var said, names, notes []string
	for _, r := range m.Rows {
		counts := [3]int{}
		for _, mark := range r.Marks {
			counts[min(mark.Kind, Denied)]++
		}
		said = append(said, fmt.Sprintf("%s: %d allowed, %d held, %d denied", spaced(r.Name), counts[Allowed], counts[Delayed], counts[Denied]))
		names, notes = append(names, r.Name), append(notes, r.Note)
	}
	top := float64(chartTop + 28)
	bottom := top + float64(len(m.Rows)*markHeight)
	c := newCanvas(int(bottom)+46, m.Title, m.Caption, strings.Join(said, "; ")+".")
	left, right := nameWidth(names...), 0.0
	if strings.Join(notes, "") != "" {
		right = nameWidth(notes...) - 20
	}
	x := newScale(m.From, m.To, left+8, chartWidth-chartRight-right, false)
	c.f(`<rect class="within" x="16" y="66" width="3" height="13"/><text x="26" y="77">allowed</text>` +
		`<circle class="delayed" cx="105" cy="73" r="4"/><text x="115" y="77">held, drawn where it acts</text>` +
		`<path class="denied" d="M292 69v7"/><text x="300" y="77">denied</text>` + "\n")
	for _, v := range x.ticks() {
		c.f(`<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x.at(v), top, x.at(v), bottom)
		c.label("tick", x.at(v), bottom+16, "middle", tickText(v))
	}
	c.label("", (x.start+x.end)/2, bottom+36, "middle", "seconds")
	for i, r := range m.Rows {
		base := top + float64(i*markHeight) + 30
		c.label("name", left-8, base, "end", spaced(r.Name))
		c.label("", chartWidth-16, base, "end", r.Note)
		c.f(`<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", x.start-4, base, x.end+4, base)
		for i := 0; i < len(r.Marks); {
			at, n := x.at(r.Marks[i].At), 1
			for i+n < len(r.Marks) && r.Marks[i+n].Kind == r.Marks[i].Kind && x.at(r.Marks[i+n].At)-at < 0.5 {
				n++
			}
			c.mark(r.Marks[i].Kind, at, base, n)
			i += n
		}
		c.f("\n")
	}
	return c.end(w)
}

// mark draws n requests that are at one place.
func (c *canvas) mark(k Kind, at, base float64, n int) {
	count := func(y float64) {
		if n > 1 {
			c.label("tick", at+3, y, "start", fmt.Sprintf("×%d", n))
		}
	}
	switch k {
	case Allowed:
		c.f(`<rect class="within" x="%.1f" y="%.1f" width="2.4" height="20"/>`, at-1.2, base-20)
		count(base - 22)
	case Delayed:
		c.f(`<circle class="delayed" cx="%.1f" cy="%.1f" r="4"/>`, at, base-10)
		count(base - 22)
	default:
		c.f(`<path class="denied" d="M%.1f %.1fv%d"/>`, at, base+1, min(4+3*n, 12))
	}
}

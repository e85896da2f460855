package report

import (
	"fmt"
	"io"
	"strings"
)

// group is bars under a name.
type group struct {
	name string
	bars []bar
}

// bar is a named positive value; ours stands out.
type bar struct {
	name  string
	value float64
	ours  bool
}

// drawBars draws groups of bars from left to right, with their values beside them. A logarithmic scale begins at the
// power of ten below the least value.
func drawBars(w io.Writer, title, caption, unit string, linear bool, groups []group) error {
	var names, said []string
	var values []float64
	rows := 0
	for _, g := range groups {
		var parts []string
		for _, b := range g.bars {
			names, values = append(names, b.name), append(values, b.value)
			parts = append(parts, fmt.Sprintf("%s %s", b.name, number(b.value)))
		}
		said = append(said, g.name+": "+strings.Join(parts, ", "))
		rows += len(g.bars) + 1
	}
	bottom := float64(top + rows*rowHeight + 6)
	c := newCanvas(int(bottom)+44, title, caption, strings.Join(said, "; ")+".")
	x := logScale(values, nameWidth(names), width-right-70, false)
	if linear {
		x = linearScale(values, x.start, x.end)
	} else {
		unit += ", logarithmic scale"
	}
	for _, v := range x.ticks() {
		c.f(`<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%.1f"/>`, x.at(v), top, x.at(v), bottom)
		c.label("tick", x.at(v), bottom+16, "middle", tick(v))
	}
	c.label("", (x.start+x.end)/2, bottom+34, "middle", unit)
	y := float64(top)
	for _, g := range groups {
		c.label("name", 16, y+17, "start", g.name)
		y += rowHeight
		c.f(`<path class="axis" d="M%.1f %.1f v%d"/>`+"\n", x.start, y, len(g.bars)*rowHeight)
		for _, b := range g.bars {
			class, text := "bar", ""
			if b.ours {
				class, text = "barours", "ours"
			}
			c.label(text, x.start-8, y+15, "end", b.name)
			c.f(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`+"\n", class, x.start, y+2, max(1, x.at(b.value)-x.start), rowHeight-6)
			c.label(text, x.at(b.value)+6, y+15, "start", number(b.value))
			y += rowHeight
		}
	}
	c.f(`<path class="axis" d="M%.1f %.1f H%.1f"/>`+"\n", x.start, bottom, x.end)
	return c.end(w)
}

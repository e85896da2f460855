package lab

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Bars is a bar for each of some values. What is above the limit is hatched.
type Bars struct {
	Title, Caption string
	Unit           string // of the values, at the scale
	Log            bool   // a logarithmic scale; a value of 0 has no bar
	Limit          float64
	LimitName      string // "limit", if left out
	Bars           []Bar
}

// Bar is a named value of at least 0.
type Bar struct {
	Name  string
	Value float64
}

// WriteSVG draws the bars from left to right, with their values beside them.
func (b Bars) WriteSVG(w io.Writer) error {
	var said []string
	names := []string{}
	least, most := math.Inf(1), b.Limit
	if b.Limit > 0 {
		least = b.Limit
	}
	for _, bar := range b.Bars {
		said = append(said, fmt.Sprintf("%s %s", spaced(bar.Name), shown(bar.Value)))
		names = append(names, bar.Name)
		most = max(most, bar.Value)
		if bar.Value > 0 {
			least = min(least, bar.Value)
		}
	}
	if !b.Log || math.IsInf(least, 1) {
		least = 0
	}
	height := chartTop + len(b.Bars)*rowHeight + 50
	if b.Limit > 0 {
		height += 18
	}
	c := newCanvas(height, b.Title, b.Caption, strings.Join(said, ", ")+".")
	left := nameWidth(names...)
	s := newScale(least, most, left, chartWidth-chartRight-60, b.Log).roundUp()
	top, bottom := float64(chartTop), float64(chartTop+len(b.Bars)*rowHeight)
	if b.Limit > 0 {
		top, bottom = top+18, bottom+18
	}
	for _, v := range s.ticks() {
		c.f(`<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, s.at(v), top, s.at(v), bottom)
		c.label("tick", s.at(v), bottom+16, "middle", tickText(v))
	}
	c.label("", (left+s.end)/2, bottom+36, "middle", b.Unit)
	for i, bar := range b.Bars {
		y := top + float64(i*rowHeight)
		c.label("name", left-8, y+19, "end", spaced(bar.Name))
		within := bar.Value
		if b.Limit > 0 {
			within = min(within, b.Limit)
		}
		if bar.Value > 0 {
			c.f(`<rect class="within" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`+"\n", left, y+5, s.at(within)-left, rowHeight-10)
		}
		if bar.Value > within {
			c.f(`<rect %s x="%.1f" y="%.1f" width="%.1f" height="%d"/>`+"\n", c.over(), s.at(within), y+5, s.at(bar.Value)-s.at(within), rowHeight-10)
		}
		c.label("", s.at(bar.Value)+6, y+19, "start", shown(bar.Value))
	}
	if b.Limit > 0 {
		c.f(`<line class="limit" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", s.at(b.Limit), top, s.at(b.Limit), bottom)
		c.label("", s.at(b.Limit), top-5, "middle", fmt.Sprintf("%s %s", limitName(b.LimitName), shown(b.Limit)))
	}
	return c.end(w)
}

func limitName(name string) string {
	if name == "" {
		return "limit"
	}
	return name
}

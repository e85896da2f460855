package lab

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// drawn is the elements of a chart and its text, which is well-formed, within its frame, and asks nothing of the world.
func drawn(t *testing.T, chart Chart) (elements map[string]int, text string) {
	t.Helper()
	var b bytes.Buffer
	if err := chart.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	text = b.String()
	elements = map[string]int{}
	ids := map[string]bool{}
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		elements[e.Name.Local]++
		for _, a := range e.Attr {
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || strings.HasPrefix(a.Value, "-") {
				t.Errorf("%s %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
			if a.Name.Local == "id" && ids[a.Value] {
				t.Errorf("id %s twice", a.Value)
			} else if a.Name.Local == "id" {
				ids[a.Value] = true
			}
		}
	}
	if elements["title"] != 1 || elements["desc"] != 1 || elements["script"]+elements["image"] != 0 || outside.MatchString(text) {
		t.Errorf("%v", elements)
	}
	return elements, text
}

func TestBars(t *testing.T) {
	bars := Bars{Title: "T", Caption: "<C>", Unit: "units", Limit: 10, Bars: []Bar{{"token_bucket", 20}, {"small", 5}, {"none", 0}}}
	elements, text := drawn(t, bars)
	if elements["rect"] != 2+2+1 { // the page, the pattern; the parts within; the part above
		t.Errorf("%v", elements)
	}
	for _, part := range []string{">token bucket<", ">limit 10<", "&lt;C&gt;", "token bucket 20, small 5, none 0."} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q", part)
		}
	}
	// A logarithmic scale of six decades; and nothing at all.
	bars.Log, bars.Bars, bars.Limit = true, []Bar{{"a", 3}, {"b", 2_000_000}, {"c", 0}}, 0
	if _, text := drawn(t, bars); !strings.Contains(text, ">1000000<") || !strings.Contains(text, ">10<") {
		t.Error(text)
	}
	drawn(t, Bars{})
	drawn(t, Bars{Log: true})
}

func TestLines(t *testing.T) {
	lines := Lines{Title: "T", X: "x", Y: "y", Limit: 5, LimitName: "bound", Series: []Series{
		{Name: "up", X: []float64{-1, 0, 1}, Y: []float64{0, 5, 10}}, {Name: "steps", X: []float64{-1, 1}, Y: []float64{1, 2}, Step: true}, {Name: "empty"},
	}}
	elements, text := drawn(t, lines)
	if elements["path"] != 1+2*3 || !strings.Contains(text, "up ends at 10; steps ends at 2; empty ends at -.") || !strings.Contains(text, "bound 5") {
		t.Errorf("%v in %s", elements, text)
	}
	lines.Log = true
	drawn(t, lines)
	drawn(t, Lines{})
	drawn(t, Lines{Log: true, Series: []Series{{Name: "zero", X: []float64{1}, Y: []float64{0}}}})
}

// Thinning keeps the ends, and leaves out only what would not be seen.
func TestThinned(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var points [][2]float64
	y := 100.0
	for i := range 3000 {
		if i%300 > 200 {
			y += r.Float64()*4 - 2
		}
		points = append(points, [2]float64{float64(i) / 4, y})
	}
	kept := thinned(points)
	if len(kept) > len(points)/2 || kept[0] != points[0] || kept[len(kept)-1] != points[len(points)-1] {
		t.Fatalf("%d of %d points kept", len(kept), len(points))
	}
	for _, p := range points {
		nearest := math.Inf(1)
		for i := 1; i < len(kept); i++ {
			nearest = min(nearest, distance(p, kept[i-1], kept[i]))
		}
		if nearest > unseen {
			t.Fatalf("%v is %v from the line", p, nearest)
		}
	}
}

func TestMarks(t *testing.T) {
	marks := Marks{Title: "T", To: 2, Rows: []MarkRow{
		{"a", "3 of 5", []Mark{{0, Allowed}, {0, Allowed}, {0.5, Delayed}, {1, Denied}, {1, Denied}}}, {Name: "b"},
	}}
	elements, text := drawn(t, marks)
	if elements["circle"] != 1+1 || !strings.Contains(text, ">×2<") || !strings.Contains(text, "a: 2 allowed, 1 held, 2 denied; b: 0 allowed") || !strings.Contains(text, ">3 of 5<") {
		t.Errorf("%v in %s", elements, text)
	}
	drawn(t, Marks{})
}

func TestPanels(t *testing.T) {
	panels := Panels{Title: "T", Y: "units", To: 3, Limit: 2, Panels: []Panel{
		{Name: "a", Note: "noted", Admitted: []float64{1, 3, 0}, Denied: []float64{0, 2, 1}, Acting: []float64{1, 1, 1}}, {Name: "b", Admitted: []float64{0, 1, 2}},
	}}
	_, text := drawn(t, panels)
	if !strings.Contains(text, ">acting<") || !strings.Contains(text, "a: noted") || !strings.Contains(text, ">5<") {
		t.Error(text)
	}
	panels.Panels[0].Denied[2] = 1000
	if _, text := drawn(t, panels); !strings.Contains(text, "cut off") || !strings.Contains(text, ">12<") {
		t.Error("many denials hide what is let through")
	}
	panels.Panels[0].Acting = nil
	if _, text := drawn(t, panels); strings.Contains(text, ">acting<") {
		t.Error("acting is explained, and not drawn")
	}
	drawn(t, Panels{})
}

func TestScaleTicks(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		log      bool
		want     string
	}{
		{0, 1200, false, "0 500 1000 1500"}, {-10, 10, false, "-10 -5 0 5 10"}, {0, 0.7, false, "0 0.2 0.4 0.6 0.8"}, {0, 0, false, "0 0.2 0.4 0.6 0.8 1"},
		{3, 20000, true, "1 10 100 1000 10000 100000"}, {0, 0, true, "1e-06 1e-05"}, {1, 1, true, "1 10"},
	} {
		var got []string
		for _, v := range newScale(c.from, c.to, 0, 100, c.log).roundUp().ticks() {
			got = append(got, tickText(v))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v to %v: %v, want %s", c.from, c.to, got, c.want)
		}
	}
}

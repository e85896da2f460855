package engine

import (
	"testing"

	"pgregory.net/rapid"
)

func drawSetup(t *rapid.T) Setup {
	s := Default()
	s.Traffic = rapid.SampledFrom(Traffics()).Draw(t, "traffic")
	s.Count = rapid.Int64Range(1, 50).Draw(t, "count")
	s.Burst = rapid.Int64Range(1, 50).Draw(t, "burst")
	s.Period = rapid.Int64Range(100, 3000).Draw(t, "period")
	s.Rate = rapid.Int64Range(60, 6000).Draw(t, "rate")
	s.Size = rapid.Int64Range(1, 40).Draw(t, "size")
	s.Every = rapid.Int64Range(100, 3000).Draw(t, "every")
	s.Cost = rapid.Int64Range(1, 3).Draw(t, "cost")
	s.Clients = rapid.Int64Range(1, 4).Draw(t, "clients")
	s.Seed = rapid.Int64Range(0, 9).Draw(t, "seed")
	s.Outage = rapid.SampledFrom(Outages()).Draw(t, "outage")
	s.Share = rapid.Int64Range(0, 1).Draw(t, "share")
	s.Instances = rapid.Int64Range(1, 4).Draw(t, "instances")
	s.Span = 10_000
	return s
}

// Requests come in order of time; and all traffic but the random is the same, whenever one begins to look.
func TestTrafficInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		from := rapid.Int64Range(0, 5*second).Draw(t, "from")
		all, later := newTraffic(s, -1), newTraffic(s, from)
		last := int64(-1)
		for range 500 {
			a := all.peek()
			all.skip()
			if a.at == never {
				break
			}
			if a.at < last || a.subject < 0 || a.subject >= int(s.Clients) {
				t.Fatalf("%+v after %d", a, last)
			}
			last = a.at
			if a.at <= from || s.Traffic == "poisson" {
				continue
			}
			if b := later.peek(); b != a {
				t.Fatalf("after %d: %+v, want %+v", from, b, a)
			}
			later.skip()
		}
	})
}

func TestTrafficShapes(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int64 // ms
	}{
		{"rate=600", []int64{0, 100, 200, 300}},
		{"traffic=bursts&size=2&every=500", []int64{0, 0, 500, 500, 1000}},
		{"traffic=onoff&rate=600&every=400", []int64{0, 100, 400, 500, 800}},
		{"traffic=boundary&rate=600&period=1200", []int64{1000, 1100, 1200, 1300, 1400, 3400}},
		{"traffic=quiet", nil},
		{"rate=600&until=100", []int64{0, 100}},
	} {
		s, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		tr := newTraffic(s, -1)
		for i, want := range c.want {
			if got := tr.peek().at; got != want*millisecond {
				t.Errorf("%s: request %d at %d µs, want %d ms", c.text, i, got, want)
			}
			tr.skip()
		}
		if len(c.want) == 0 || s.Until > 0 {
			if got := tr.peek().at; got != never {
				t.Errorf("%s: one more at %d", c.text, got)
			}
		}
	}
}

// A random minute has about as many requests as its rate says, and the same seed the same.
func TestTrafficPoisson(t *testing.T) {
	s, _ := Parse("traffic=poisson&rate=6000")
	a, b := newTraffic(s, -1), newTraffic(s, -1)
	n := 0
	for ; a.peek().at < minute; n++ {
		if a.peek() != b.peek() {
			t.Fatal("the same seed gives other times")
		}
		a.skip()
		b.skip()
	}
	if n < 5600 || n > 6400 { // five standard deviations
		t.Errorf("%d requests, want about 6000", n)
	}
}

package lab

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
)

// brief is a run of 3 s with an outage and a flap. Its timeout is long, so that a busy machine is not taken for an
// outage.
func brief() OutageParams {
	return OutageParams{
		Limit:   sluice.Limit{Count: 40, Period: time.Second, Burst: 60},
		Timeout: 250 * time.Millisecond,
		Schedule: Schedule{
			Duration: 3 * time.Second, AwayFrom: 500 * time.Millisecond, AwayTo: 2 * time.Second,
			FlapFor: 600 * time.Millisecond, Flap: 200 * time.Millisecond,
		},
	}
}

// named returns the results by name, and fails where they contradict themselves.
func named(t *testing.T, r OutageResult) map[string]OutageVariant {
	t.Helper()
	m := map[string]OutageVariant{}
	for _, v := range r.Results {
		m[v.Name] = v
		sum := int64(0)
		for _, n := range v.PerSecond {
			sum += n
		}
		if sum != v.Admitted || v.Asked != v.Shared+v.Local+v.Assumed+v.Errors || v.Errors != 0 || v.Bound != r.Params.bound() {
			t.Errorf("%s: %+v does not add up, or has errors", v.Name, v)
		}
	}
	if len(m) != 5 {
		t.Fatalf("%d variants, want 5", len(m))
	}
	return m
}

// The variants differ as they are meant to, whatever an outage is and whatever Redis is. The relations are wide, since
// time is real.
func TestOutageContrasts(t *testing.T) {
	for _, c := range []struct{ server, how string }{{realServer, "refuse"}, {miniServer, "hang"}} {
		t.Run(c.server+" "+c.how, func(t *testing.T) {
			p := brief()
			p.Server, p.How = c.server, c.how
			var lines []string
			p.Progress = func(line string) { lines = append(lines, line) }
			r, err := Outage(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(r.Server, c.server) || len(lines) == 0 || !strings.Contains(lines[0], r.Server) {
				t.Errorf("server %q, progress %q", r.Server, lines)
			}
			m := named(t, r)
			both, share, neither := m["local, share and carry"], m["local, share alone"], m["local, neither"]
			allow, deny := m["allow"], m["deny"]
			if both.Ratio > 1.25 || both.Ratio < 0.75 {
				t.Errorf("share and carry: ratio %.2f, want about 1", both.Ratio)
			}
			for _, more := range [][2]OutageVariant{{share, both}, {neither, share}, {allow, share}, {both, deny}} {
				if more[0].Admitted <= more[1].Admitted {
					t.Errorf("%s admits %d, %s %d: want more", more[0].Name, more[0].Admitted, more[1].Name, more[1].Admitted)
				}
			}
			if deny.PerSecond[1] != 0 { // away in all of it
				t.Errorf("deny admits %d in second 1", deny.PerSecond[1])
			}
			if both.Local == 0 || both.Shared == 0 || allow.Assumed == 0 || allow.Local != 0 {
				t.Errorf("sources: %+v, %+v", both, allow)
			}
		})
	}
}

// A skewed fleet loses, and stays within the bound.
func TestOutageSkewed(t *testing.T) {
	p := brief()
	p.Server, p.Instances, p.Skew, p.Bunch, p.Demand = miniServer, 2, []float64{1, 0}, 2, 2
	r, err := Outage(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	v := named(t, r)["local, share and carry"]
	if v.Ratio > 1.1 || v.Lost < 0.1*v.Bound || v.Asked%2 != 0 {
		t.Errorf("%+v: want a part of the bound lost", v)
	}
}

func TestOutageEndsWithItsContext(t *testing.T) {
	for _, how := range Hows() {
		p := brief()
		p.How, p.Duration = how, mostDuration
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		start := time.Now()
		_, err := Outage(ctx, p)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > soon {
			t.Errorf("%s: %v after %v", how, err, time.Since(start))
		}
		cancel()
	}
}

func TestOutageCheck(t *testing.T) {
	if err := (OutageParams{}).Check(); err != nil {
		t.Errorf("the zero params: %v", err)
	}
	for want, edit := range map[string]func(*OutageParams){
		"Instances 65":   func(p *OutageParams) { p.Instances = 65 },
		"Instances -1":   func(p *OutageParams) { p.Instances = -1 },
		"Count 0":        func(p *OutageParams) { p.Limit.Count = 0 },
		"Burst -1":       func(p *OutageParams) { p.Limit.Burst = -1 },
		"Demand -1":      func(p *OutageParams) { p.Demand = -1 },
		"Demand 200":     func(p *OutageParams) { p.Demand = 200 },
		"Bunch":          func(p *OutageParams) { p.Bunch = -1 },
		"3 weights":      func(p *OutageParams) { p.Skew = []float64{1, 2, 3} },
		"weights of 0":   func(p *OutageParams) { p.Skew = []float64{1, 2, 3, -1} },
		"weight above 0": func(p *OutageParams) { p.Skew = make([]float64, 4) },
		"How \"kill\"":   func(p *OutageParams) { p.How = "kill" },
		"Timeout 1µs":    func(p *OutageParams) { p.Timeout = time.Microsecond },
		"Duration":       func(p *OutageParams) { p.Duration = -1 },
		"away 2s to 1s":  func(p *OutageParams) { p.AwayFrom, p.AwayTo = 2*time.Second, time.Second },
		"away 500ms to":  func(p *OutageParams) { p.AwayTo = 4 * time.Second },
		"FlapFor":        func(p *OutageParams) { p.FlapFor = -1 },
		"Flap 0s":        func(p *OutageParams) { p.Flap = 0 },
	} {
		p := brief()
		edit(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func TestScheduleOutages(t *testing.T) {
	s := func(seconds ...float64) (spans []Span) {
		for i := 0; i < len(seconds); i += 2 {
			spans = append(spans, Span{time.Duration(seconds[i] * 1e9), time.Duration(seconds[i+1] * 1e9)})
		}
		return spans
	}
	for _, c := range []struct {
		schedule Schedule
		want     []Span
	}{
		{DefaultSchedule(), s(2, 8, 9, 10, 11, 12)},
		{Schedule{60e9, 5e9, 35e9, 20e9, 2e9}, s(5, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55)},
		{Schedule{Duration: 5e9, AwayFrom: 1e9, AwayTo: 2e9}, s(1, 2)},
		{Schedule{Duration: 5e9, AwayFrom: 2e9, AwayTo: 2e9}, nil},
		{Schedule{5e9, 1e9, 2e9, 2.5e9, 1e9}, s(1, 2, 3, 4)},
		{Schedule{3.5e9, 1e9, 2e9, 9e9, 1e9}, s(1, 2, 3, 3.5)},
	} {
		if got := c.schedule.Outages(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.schedule, got, c.want)
		}
	}
	if away := (Schedule{5e9, 0.5e9, 1.25e9, 2e9, 0.25e9}).away(1); away != 0.25+0.25+0 {
		t.Errorf("away in second 1: %v", away)
	}
}

// made is a result without a run.
func made() OutageResult {
	p := brief().filled()
	p.Skew = []float64{70, 10, 10, 10}
	r := OutageResult{Params: p, Server: "redis-server <7> & more"}
	for i, v := range variants() {
		t := newTally(p.Duration)
		for s := range 3 {
			for range 60 * (i + 1) {
				t.add(time.Duration(s)*time.Second, time.Millisecond, sluice.Decision{Allowed: true, Charged: 1}, nil)
			}
		}
		r.Results = append(r.Results, t.result(v, p))
	}
	return r
}

func TestOutageJSON(t *testing.T) {
	var b bytes.Buffer
	if err := made().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	params, results := got["params"].(map[string]any), got["results"].([]any)
	if got["experiment"] != "outage" || params["away_from_s"] != 0.5 || params["timeout_s"] != 0.25 || params["instances"] != 4.0 || len(results) != 5 {
		t.Errorf("%s", &b)
	}
	first := results[0].(map[string]any)
	want := map[string]any{
		"name": "local, share and carry", "mode": "local", "share": true, "carry": true, "asked": 180.0, "admitted": 180.0,
		"bound": 180.0, "ratio": 1.0, "lost": 0.0, "worst_second": 60.0, "worst_at_s": 1.0,
		"per_second": []any{60.0, 60.0, 60.0}, "shared": 180.0, "local": 0.0, "assumed": 0.0, "errors": 0.0, "slowest_ms": 1.0,
	}
	if !reflect.DeepEqual(first, want) {
		t.Errorf("%v, want %v", first, want)
	}
}

func TestOutageText(t *testing.T) {
	var b bytes.Buffer
	if err := made().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"limit 40/s burst 60", "as 70:10:10:10", "500ms-2s, 2.2s-2.4s of 3s", "burst + rate·t = 180",
		"60 at 1s", "partly away", "300", "deny",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in\n%s", part, &b)
		}
	}
	if strings.Count(b.String(), "\n") != 16 {
		t.Errorf("%d lines:\n%s", strings.Count(b.String(), "\n"), &b)
	}
}

func TestOutageCSV(t *testing.T) {
	var b bytes.Buffer
	if err := made().WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(lines) != 1+5*3 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if got := strings.Join(lines[2], "|"); got != "local, share and carry|local|true|true|1|1|40|60" {
		t.Errorf("%s", got)
	}
}

// The drawing is well-formed, has a plot for each variant, and asks nothing of the world.
func TestOutageSVG(t *testing.T) {
	var b bytes.Buffer
	if err := made().WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	drawn := b.String()
	elements := map[string]int{}
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || strings.HasPrefix(a.Value, "-") {
					t.Errorf("%s %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	if elements["path"] != 5 || elements["title"] != 1 || elements["script"]+elements["image"] != 0 {
		t.Errorf("%v", elements)
	}
	for _, v := range variants() {
		if !strings.Contains(drawn, ">"+v.Name+"<") {
			t.Errorf("no plot of %s", v.Name)
		}
	}
}

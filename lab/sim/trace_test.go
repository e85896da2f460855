package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

func denial() *algorithm.Decision { return &algorithm.Decision{RetryAfter: time.Second} }

func TestReadTrace(t *testing.T) {
	const s = 1_000_000
	for _, c := range []struct {
		name, format, text string
		want               []Request
		names              []string
	}{
		{"csv", "csv", "time,subject,cost\n10,a,2\n10.5,b\n11.000001,a,1\n", []Request{{0, 0, 2}, {s / 2, 1, 1}, {s + 1, 0, 1}}, []string{"a", "b"}},
		{"csv, out of order, quoted, times alone", "csv", "2.5\n\"1\",\"x, y\",0\n", []Request{{0, 1, 0}, {1.5 * s, 0, 1}}, []string{"", "x, y"}},
		{"csv, RFC 3339", "csv", "2026-01-02T03:04:05.25Z,a\n2026-01-02T04:04:04.75+01:00,a\n", []Request{{0, 0, 1}, {s / 2, 0, 1}}, []string{"a"}},
		{"csv, whole seconds", "csv", "7,a\n7,b\n7,c\n7,d\n8,a\n", []Request{{0, 0, 1}, {s / 4, 1, 1}, {s / 2, 2, 1}, {3 * s / 4, 3, 1}, {s, 0, 1}}, []string{"a", "b", "c", "d"}},
		{"nginx", "nginx",
			`203.0.113.7 - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 612 "-" "curl/8"` + "\n\n" +
				`2001:db8::1 - bob [10/Oct/2026:15:55:36 +0200] "\x16\x03" 400 0 "-" "-"` + "\n" +
				`203.0.113.7 - - [10/Oct/2026:13:55:38 +0000] "GET /b HTTP/1.1" 200 612 "-" "curl/8"` + "\n",
			[]Request{{0, 0, 1}, {s / 2, 1, 1}, {2 * s, 0, 1}}, []string{"203.0.113.7", "2001:db8::1"}},
		{"envoy", "envoy",
			`[2026-04-15T20:17:00.310Z] "POST /api/v1 HTTP/2" 204 - 154 0 226 100 "10.0.35.28, 203.0.113.9" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80"` + "\n" +
				`[2026-04-15T20:17:00.300Z] "GET / HTTP/1.1" 200 - 0 9 1 0 "-" "-" "-" "-" "-"` + "\n",
			[]Request{{0, 1, 1}, {10_000, 0, 1}}, []string{"203.0.113.9", "-"}},
		{"nothing", "csv", "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadTrace(strings.NewReader(c.text), c.format)
			if err != nil || !reflect.DeepEqual(got.Requests, c.want) || !reflect.DeepEqual(got.Names, c.names) {
				t.Errorf("%+v, %v; want %v of %q", got, err, c.want, c.names)
			}
		})
	}
}

func TestReadTraceSaysWhere(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"xml", "", `format "xml": want one of csv, nginx, envoy`},
		{"csv", "1,a\nx,b\n", `line 2: time "x"`},
		{"csv", "NaN,a\n", `line 1: time "NaN"`},
		{"csv", "1e300,a\n", `line 1: time "1e300"`},
		{"csv", "1,a,-1\n", `line 1: cost "-1"`},
		{"csv", "1,a,2,3\n", `line 1: 4 fields`},
		{"csv", "1,\"a\n", `line`},
		{"nginx", "\n203.0.113.7 - -\n", "line 2: want an address"},
		{"nginx", "203.0.113.7 - - [today] x\n", `line 1: time "today"`},
		{"envoy", "x\n", "line 1: want a time in brackets"},
		{"envoy", `[now] "a" "b"` + "\n", `line 1: time "now"`},
		{"nginx", strings.Repeat("x", longestLine+1), "line 1: "},
	} {
		if _, err := ReadTrace(strings.NewReader(c.text), c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.40q: %v, want %q", c.format, c.text, err, c.want)
		}
	}
}

// A trace runs like any arrivals.
func TestTraceRuns(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader("0,a,3\n0.5,a,3\n0.6,b,3\n1.2,a,3\n"), "csv")
	if err != nil {
		t.Fatal(err)
	}
	l, err := New("fixed_window", algorithm.Limit{Count: 4, Period: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Run(l, trace, Options{Duration: trace.Duration()})
	if err != nil || f.Requests != 4 || f.Admitted != 3 || f.UnitsAdmitted != 9 || f.Subjects != 2 {
		t.Errorf("%+v, %v", f, err)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("1,a,2\n2026-01-02T03:04:05Z,b\n", 0)
	f.Add(`203.0.113.7 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`, 1)
	f.Add(`[2026-04-15T20:17:00.310Z] "GET / HTTP/2" 204 - 1 0 2 1 "203.0.113.9" "a" "b" "c" "d"`, 2)
	f.Fuzz(func(t *testing.T, text string, format int) {
		trace, err := ReadTrace(strings.NewReader(text), TraceFormats()[uint(format)%3])
		last := int64(0)
		for _, r := range trace.Requests {
			if err != nil || r.At < last || r.N < 0 || r.Subject < 0 || r.Subject >= len(trace.Names) {
				t.Fatalf("%+v, %v", trace, err)
			}
			last = r.At
		}
	})
}

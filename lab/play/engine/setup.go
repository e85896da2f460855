package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Setup is an experiment: what is compared, the limit, the traffic and the outage. Text form: [Parse].
type Setup struct {
	View      string // what stands side by side: one of Views
	Algorithm string // of the views that compare something else: one of Algorithms
	Count     int64  // units per Period
	Period    int64  // ms
	Burst     int64  // of the two buckets

	Traffic string // one of Traffics
	Rate    int64  // requests a minute
	Size    int64  // requests of one burst
	Every   int64  // ms: from one burst, or one busy time, to the next
	Cost    int64  // units of a request
	Clients int64  // subjects that take turns; under View race: callers that come at once
	Until   int64  // ms: no traffic after that; 0: it never ends
	Seed    int64  // of all that is random

	Outage    string // what decides while Redis is away: one of Outages
	Share     int64  // 1: under local, each instance has its share of the limit; 0: each has all of it
	Instances int64  // processes that the requests are spread over
	Away      int64  // ms: Redis leaves, by plan; 0: it does not
	Back      int64  // ms: it comes back, by plan

	Window int64 // ms: the largest count is that of any closed window of this length; 0: Period
	Span   int64 // ms that the timeline shows; 0: ten periods

	Trip    int64 // µs from a client to Redis and back, in the views race and block
	Entries int64 // that a slow script reads, in the view block
}

// Views are what can stand side by side: the four algorithms; ways to decide in an outage; ways to set a key's TTL;
// ways to read, compute and write; a fast and a slow script.
func Views() []string { return []string{"algorithms", "outage", "ttl", "race", "block"} }

// Algorithms are the names of the algorithms, as in a rule file.
func Algorithms() []string {
	return []string{"token_bucket", "fixed_window", "sliding_window", "leaky_bucket"}
}

// Traffics are the shapes of traffic: evenly spaced; at random times; busy half of the time; bursts; an attack around
// each second boundary of a window; none.
func Traffics() []string {
	return []string{"steady", "poisson", "onoff", "bursts", "boundary", "quiet"}
}

// Outages are what can decide while Redis is away.
func Outages() []string { return []string{"local", "allow", "deny"} }

// Field describes one field of a Setup: a number from Least to Most, or one of Choices.
type Field struct {
	Name                 string
	Default, Least, Most int64
	Choices              []string // of a choice; the first is the default
	number               func(*Setup) *int64
	choice               func(*Setup) *string
}

const day = 86_400_000 // ms

// Fields are all fields, in the order of the text form.
func Fields() []Field {
	return []Field{
		{Name: "view", Choices: Views(), choice: func(s *Setup) *string { return &s.View }},
		{Name: "algorithm", Choices: Algorithms(), choice: func(s *Setup) *string { return &s.Algorithm }},
		{Name: "count", Default: 10, Least: 1, Most: 10_000, number: func(s *Setup) *int64 { return &s.Count }},
		{Name: "period", Default: 1000, Least: 100, Most: day, number: func(s *Setup) *int64 { return &s.Period }},
		{Name: "burst", Default: 10, Least: 1, Most: 10_000, number: func(s *Setup) *int64 { return &s.Burst }},
		{Name: "traffic", Choices: Traffics(), choice: func(s *Setup) *string { return &s.Traffic }},
		{Name: "rate", Default: 900, Least: 1, Most: 120_000, number: func(s *Setup) *int64 { return &s.Rate }},
		{Name: "size", Default: 20, Least: 1, Most: 2_000, number: func(s *Setup) *int64 { return &s.Size }},
		{Name: "every", Default: 2000, Least: 100, Most: 3_600_000, number: func(s *Setup) *int64 { return &s.Every }},
		{Name: "cost", Default: 1, Least: 1, Most: 100, number: func(s *Setup) *int64 { return &s.Cost }},
		{Name: "clients", Default: 1, Least: 1, Most: 200, number: func(s *Setup) *int64 { return &s.Clients }},
		{Name: "until", Most: day, number: func(s *Setup) *int64 { return &s.Until }},
		{Name: "seed", Default: 1, Most: 1<<31 - 1, number: func(s *Setup) *int64 { return &s.Seed }},
		{Name: "outage", Choices: Outages(), choice: func(s *Setup) *string { return &s.Outage }},
		{Name: "share", Default: 1, Most: 1, number: func(s *Setup) *int64 { return &s.Share }},
		{Name: "instances", Default: 4, Least: 1, Most: 16, number: func(s *Setup) *int64 { return &s.Instances }},
		{Name: "away", Most: day, number: func(s *Setup) *int64 { return &s.Away }},
		{Name: "back", Most: day, number: func(s *Setup) *int64 { return &s.Back }},
		{Name: "window", Most: 3_600_000, number: func(s *Setup) *int64 { return &s.Window }},
		{Name: "span", Most: day, number: func(s *Setup) *int64 { return &s.Span }},
		{Name: "trip", Default: 500, Least: 50, Most: 50_000, number: func(s *Setup) *int64 { return &s.Trip }},
		{Name: "entries", Default: 100_000, Least: 1, Most: 1_000_000, number: func(s *Setup) *int64 { return &s.Entries }},
	}
}

// Default returns the setup whose text is empty.
func Default() Setup {
	var s Setup
	for _, f := range Fields() {
		if f.choice != nil {
			*f.choice(&s) = f.Choices[0]
		} else {
			*f.number(&s) = f.Default
		}
	}
	return s
}

// Parse reads a setup as the fragment of a URL holds it, such as "count=600&period=60000&traffic=boundary". What is
// left out has its default. The error names the field, its value and its bound.
func Parse(text string) (Setup, error) {
	s, fields := Default(), Fields()
	for part := range strings.SplitSeq(text, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if i < 0 {
			return s, fmt.Errorf("engine: setup: no field %q", name)
		}
		if f := fields[i]; f.choice != nil {
			*f.choice(&s) = value // Check knows the choices
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return s, fmt.Errorf("engine: setup: %s %q: want a whole number", name, value)
		}
		*fields[i].number(&s) = n
	}
	return s, s.Check()
}

// String is the text that Parse reads: fields with their default are left out.
func (s Setup) String() string {
	var parts []string
	for _, f := range Fields() {
		switch {
		case f.choice != nil && *f.choice(&s) != f.Choices[0]:
			parts = append(parts, f.Name+"="+*f.choice(&s))
		case f.number != nil && *f.number(&s) != f.Default:
			parts = append(parts, f.Name+"="+strconv.FormatInt(*f.number(&s), 10))
		}
	}
	return strings.Join(parts, "&")
}

// mostLogged bounds the requests within one Window: each lane remembers the admitted ones.
const mostLogged = 50_000

// Check reports the first field that is out of bounds.
func (s Setup) Check() error {
	for _, f := range Fields() {
		if f.choice != nil {
			if v := *f.choice(&s); !slices.Contains(f.Choices, v) {
				return fmt.Errorf("engine: setup: %s %q: want one of %s", f.Name, v, strings.Join(f.Choices, ", "))
			}
		} else if v := *f.number(&s); v < f.Least || v > f.Most {
			return fmt.Errorf("engine: setup: %s %d: want %d to %d", f.Name, v, f.Least, f.Most)
		}
	}
	if s.Back != 0 && s.Back <= s.Away {
		return fmt.Errorf("engine: setup: back %d: want more than away %d", s.Back, s.Away)
	}
	if asked := s.Rate * s.window() / minute; asked > mostLogged {
		return fmt.Errorf("engine: setup: rate %d: %d requests within one window: want at most %d", s.Rate, asked, mostLogged)
	}
	return nil
}

// Number returns the value of a numeric field; false if there is none of that name.
func (s Setup) Number(name string) (int64, bool) {
	for _, f := range Fields() {
		if f.Name == name && f.number != nil {
			return *f.number(&s), true
		}
	}
	return 0, false
}

// Choice returns the value of a choice; false if there is none of that name.
func (s Setup) Choice(name string) (string, bool) {
	for _, f := range Fields() {
		if f.Name == name && f.choice != nil {
			return *f.choice(&s), true
		}
	}
	return "", false
}

// window is the length of the windows of which the largest count is kept, µs.
func (s Setup) window() int64 {
	if s.Window > 0 {
		return s.Window * millisecond
	}
	return min(s.Period, 3_600_000) * millisecond
}

// WindowMs is the length, in ms, of the windows of which the largest count is kept.
func (s Setup) WindowMs() int64 { return s.window() / millisecond }

// SpanMs is how much the timeline shows, ms.
func (s Setup) SpanMs() int64 {
	if s.Span > 0 {
		return max(s.Span, 100)
	}
	return min(max(10*s.Period, 2_000), 3_600_000)
}

// Limit is the limit of a named algorithm: a window has no burst of its own.
func (s Setup) Limit(algorithmName string) algorithm.Limit {
	l := algorithm.Limit{Count: s.Count, Period: time.Duration(s.Period) * time.Millisecond, Burst: s.Burst}
	if strings.HasSuffix(algorithmName, "_window") {
		l.Burst = 0
	}
	return l
}

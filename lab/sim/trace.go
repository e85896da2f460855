package sim

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Trace is arrivals that were recorded. It is read by [ReadTrace], and holds all of them.
type Trace struct {
	Requests []Request // in order of time, from 0
	Names    []string  // of the subjects
}

// mostTrace bounds the requests of a trace.
const mostTrace = 10_000_000

// Check says what of t can't be run.
func (t Trace) Check() error {
	if len(t.Requests) == 0 {
		return errors.New("sim: trace: no request in it")
	}
	return nil
}

// Start begins the requests of the trace, whatever the seed.
func (t Trace) Start(uint64) Stream {
	i := -1
	return func() (Request, bool) {
		if i++; i >= len(t.Requests) {
			return Request{}, false
		}
		return t.Requests[i], true
	}
}

// Duration is from the first request to the last.
func (t Trace) Duration() time.Duration {
	if len(t.Requests) == 0 {
		return 0
	}
	return µs(t.Requests[len(t.Requests)-1].At)
}

// TraceFormats returns the formats that ReadTrace knows. "csv" is lines of time,subject,cost: the time in seconds or as
// RFC 3339 has it, the cost 1 if left out, a first line that begins with "time" left out. "nginx" is an access log in nginx's
// combined format, which other servers write, too; its subject is the address. "envoy" is an access log in Envoy's
// default format; its subject is the last address of X-Forwarded-For, the one that Envoy saw.
func TraceFormats() []string { return []string{"csv", "nginx", "envoy"} }

// ReadTrace reads a recorded trace. Lines may be out of order, as those of access logs are. Where times are whole seconds,
// the requests of a second are spread evenly over it. The error names the line and what is wrong with it.
func ReadTrace(r io.Reader, format string) (Trace, error) {
	b := &traceReader{numbers: map[string]int{}, whole: true}
	var err error
	switch format {
	case "csv":
		err = b.csv(r)
	case "nginx":
		err = b.lines(r, nginxLine)
	case "envoy":
		err = b.lines(r, envoyLine)
	default:
		err = fmt.Errorf("format %q: want one of %s", format, strings.Join(TraceFormats(), ", "))
	}
	if err != nil {
		return Trace{}, fmt.Errorf("sim: trace: %w", err)
	}
	return b.trace(), nil
}

type traceReader struct {
	requests []Request // times as they came
	names    []string
	numbers  map[string]int // of the names
	whole    bool           // all times are whole seconds
}

func (b *traceReader) add(at int64, subject string, n int64) error {
	if len(b.requests) >= mostTrace {
		return fmt.Errorf("more than %d requests", mostTrace)
	}
	k, known := b.numbers[subject]
	if !known {
		if k = len(b.names); k >= mostSubjects {
			return fmt.Errorf("more than %d subjects", mostSubjects)
		}
		b.numbers[subject] = k
		b.names = append(b.names, subject)
	}
	b.whole = b.whole && at%1_000_000 == 0
	b.requests = append(b.requests, Request{At: at, Subject: k, N: n})
	return nil
}

func (b *traceReader) trace() Trace {
	slices.SortStableFunc(b.requests, func(x, y Request) int { return cmp.Compare(x.At, y.At) })
	if len(b.requests) > 0 {
		first := b.requests[0].At
		for i := range b.requests {
			b.requests[i].At -= first
		}
	}
	if b.whole {
		for i := 0; i < len(b.requests); {
			n := 1
			for i+n < len(b.requests) && b.requests[i+n].At == b.requests[i].At {
				n++
			}
			for k := range n {
				b.requests[i+k].At += int64(k) * 1_000_000 / int64(n)
			}
			i += n
		}
	}
	return Trace{Requests: b.requests, Names: b.names}
}

func (b *traceReader) csv(r io.Reader) error {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.TrimLeadingSpace, c.ReuseRecord = -1, true, true
	for {
		fields, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err // says the line
		}
		line, _ := c.FieldPos(0)
		if line == 1 && fields[0] == "time" {
			continue
		}
		if err := b.record(fields); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (b *traceReader) record(fields []string) error {
	if len(fields) < 1 || len(fields) > 3 {
		return fmt.Errorf("%d fields: want time,subject,cost", len(fields))
	}
	at, err := traceTime(fields[0])
	if err != nil {
		return err
	}
	subject, n := "", int64(1)
	if len(fields) > 1 {
		subject = fields[1]
	}
	if len(fields) > 2 {
		if n, err = strconv.ParseInt(strings.TrimSpace(fields[2]), 10, 64); err != nil || n < 0 || n > 1e9 {
			return fmt.Errorf("cost %q: want a whole number up to 1e9", fields[2])
		}
	}
	return b.add(at, subject, n)
}

// traceTime reads seconds or a time of RFC 3339 as µs.
func traceTime(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UnixMicro(), nil
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(math.Abs(seconds) < 1e10) {
		return 0, fmt.Errorf("time %q: want seconds, or a time such as 2026-01-02T15:04:05.678Z", s)
	}
	return int64(math.Round(seconds * 1e6)), nil
}

// longestLine is the longest line of an access log that is read.
const longestLine = 1 << 20

func (b *traceReader) lines(r io.Reader, parse func(string) (at time.Time, subject string, err error)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, longestLine)
	number := 0
	for scanner.Scan() {
		number++
		if strings.TrimSpace(scanner.Text()) == "" {
			continue
		}
		at, subject, err := parse(scanner.Text())
		if err == nil {
			err = b.add(at.UnixMicro(), subject, 1)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number+1, err)
	}
	return nil
}

// nginxLine reads: address - user [02/Jan/2006:15:04:05 -0700] "request" …
func nginxLine(line string) (time.Time, string, error) {
	address, rest, ok := strings.Cut(line, " ")
	_, rest, ok2 := strings.Cut(rest, "[")
	stamp, _, ok3 := strings.Cut(rest, "]")
	if !ok || !ok2 || !ok3 {
		return time.Time{}, "", fmt.Errorf(`want an address and a time in brackets, such as 192.0.2.1 - - [02/Jan/2026:15:04:05 +0000] "GET / HTTP/1.1" …`)
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("time %q: want one such as 02/Jan/2026:15:04:05 +0000", stamp)
	}
	return at, address, nil
}

// envoyLine reads: [2026-01-02T15:04:05.678Z] "request" … "X-Forwarded-For" …
func envoyLine(line string) (time.Time, string, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "[")
	stamp, rest, ok2 := strings.Cut(rest, "]")
	quoted := strings.Split(rest, `"`) // the texts between quotes are at 1, 3, …
	if !ok || !ok2 || len(quoted) < 5 {
		return time.Time{}, "", fmt.Errorf(`want a time in brackets, the request and X-Forwarded-For in quotes, such as [2026-01-02T15:04:05.678Z] "GET / HTTP/1.1" 200 - 0 9 1 0 "192.0.2.1" …`)
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("time %q: want one such as 2026-01-02T15:04:05.678Z", stamp)
	}
	addresses := strings.Split(quoted[3], ",")
	return at, strings.TrimSpace(addresses[len(addresses)-1]), nil
}

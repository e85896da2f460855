package algorithmtest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

var errNoLimit = errors.New("want a limit line before the first call")

// call is a parsed line. Times are µs since base.
type call struct {
	at, n, was   int64
	adjust, upTo bool
}

// parseLimit reads "10/s burst 5", or "10/s" for a window.
func parseLimit(text string) (algorithm.Limit, error) {
	limit, burst, ok := strings.Cut(text, " burst ")
	l, err := algorithm.ParseLimit(limit)
	if err == nil && ok {
		l.Burst, err = strconv.ParseInt(strings.TrimSpace(burst), 10, 64)
	}
	return l, err
}

func parseCall(text string) (c call, err error) {
	seen := map[string]bool{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "at":
			c.at, err = parseOffset(value)
		case "was":
			c.was, err = parseOffset(value)
		case "n", "upto", "adjust":
			c.n, err = strconv.ParseInt(value, 10, 64)
			c.upTo, c.adjust = name == "upto", name == "adjust"
			name = "n"
		default:
			return c, fmt.Errorf("%q: want at=, was=, n=, upto= or adjust=", field)
		}
		if err != nil {
			return c, fmt.Errorf("%q: %w", field, err)
		}
		if seen[name] {
			return c, fmt.Errorf("%q: a field twice", field)
		}
		seen[name] = true
	}
	if !seen["at"] || !seen["n"] || seen["was"] != c.adjust {
		return c, errors.New("want at= with n=, upto=, or adjust= and was=")
	}
	return c, nil
}

func parseOffset(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d%time.Microsecond != 0 {
		err = errors.New("want whole µs")
	}
	return micros(d), err
}

// result writes what comes after the arrow and before the bar.
func result(c call, d algorithm.Decision) string {
	var b strings.Builder
	switch {
	case c.adjust:
		b.WriteString("left")
	case d.Allowed:
		b.WriteString("allow")
	default:
		b.WriteString("deny")
	}
	if c.upTo {
		fmt.Fprintf(&b, " charged=%d", d.Charged)
	}
	fmt.Fprintf(&b, " remaining=%d", d.Remaining)
	switch {
	case d.RetryAfter == algorithm.Never:
		b.WriteString(" retry=never")
	case d.RetryAfter != 0:
		fmt.Fprintf(&b, " retry=%v", d.RetryAfter)
	}
	fmt.Fprintf(&b, " reset=%v", d.ResetAfter)
	if d.Delay != 0 {
		fmt.Fprintf(&b, " delay=%v", d.Delay)
	}
	return b.String()
}

func words(script *algorithm.Script, s algorithm.State) string {
	named := make([]string, len(s))
	for i, word := range s {
		named[i] = fmt.Sprintf("%s=%d", script.Words[i], word)
	}
	return strings.Join(named, " ")
}

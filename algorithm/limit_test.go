package algorithm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

func TestParseLimit(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]algorithm.Limit{
		"100/10s":                {Count: 100, Period: 10 * time.Second},
		"5/min":                  {Count: 5, Period: time.Minute},
		"5/m":                    {Count: 5, Period: time.Minute},
		"1000/h":                 {Count: 1000, Period: time.Hour},
		"1000/hour":              {Count: 1000, Period: time.Hour},
		"1/s":                    {Count: 1, Period: time.Second},
		"1/sec":                  {Count: 1, Period: time.Second},
		"1/30d":                  {Count: 1, Period: 30 * day},
		"1/day":                  {Count: 1, Period: day},
		"3/500ms":                {Count: 3, Period: 500 * time.Millisecond},
		"3/7us":                  {Count: 3, Period: 7 * time.Microsecond},
		"3/7µs":                  {Count: 3, Period: 7 * time.Microsecond},
		"7/1h30m":                {Count: 7, Period: 90 * time.Minute},
		"7/1.5s":                 {Count: 7, Period: 1500 * time.Millisecond},
		" 100 / 10 s ":           {Count: 100, Period: 10 * time.Second},
		"007/1s":                 {Count: 7, Period: time.Second},
		"4503599627370495/s":     {Count: algorithm.Bound - 1, Period: time.Second},
		"1/1125899906842624us":   {Count: 1, Period: algorithm.MaxPeriod},
		"65535/s":                {Count: 65535, Period: time.Second},
		"1/0000000000000000001s": {Count: 1, Period: time.Second},
	} {
		got, err := algorithm.ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("ParseLimit(%q) is %+v, %v: want %+v", text, got, err, want)
		}
	}
}

// An error names the text, the part, and what is wanted.
func TestParseLimitRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "want count/period",
		"10":                      "want count/period",
		"10 per s":                "want count/period",
		"10/":                     `period ""`,
		"/s":                      `count "": want a whole number`,
		"/":                       `count "": want a whole number`,
		"NaN/s":                   `count "NaN": want a whole number`,
		"Inf/s":                   `count "Inf": want a whole number`,
		"1e3/s":                   `count "1e3": want a whole number`,
		"1.5/s":                   `count "1.5": want a whole number`,
		"-1/s":                    `count "-1": want a whole number`,
		"+1/s":                    `count "+1": want a whole number`,
		"0x10/s":                  `count "0x10": want a whole number`,
		"1_000/s":                 `count "1_000": want a whole number`,
		"١/s":                     `count "١": want a whole number`,
		"0/s":                     "Count 0: want at least 1",
		"4503599627370496/s":      "Count 4503599627370496: want at most 4503599627370495",
		"9999999999999999999/s":   `count "9999999999999999999": want at most`,
		"1/0s":                    "Period 0s: want at least 1µs",
		"1/0":                     "Period 0s: want at least 1µs",
		"1/-1s":                   "Period -1s: want at least 1µs",
		"1/500ns":                 "Period 500ns: want at least 1µs",
		"1/1500ns":                "Period 1.5µs: want a whole number of µs",
		"1/5":                     `period "5": want a number of`,
		"1/parsec":                `period "parsec": want a number of`,
		"1/10w":                   `period "10w": want a number of`,
		"1/1125899906842625us":    "want at most",
		"1/9999999999h":           "want at most",
		"1/9999999999999999999s":  "want at most",
		"1/2000000000000000000us": "want at most",
		"1/s/s":                   `period "s/s"`,
		"1/s burst 5":             `period "s burst 5"`,
		"1/NaNs":                  `period "NaNs"`,
		"1/1e3s":                  `period "1e3s"`,
	} {
		got, err := algorithm.ParseLimit(text)
		switch {
		case err == nil:
			t.Errorf("ParseLimit(%q) is %+v: want an error with %q", text, got, want)
		case got != algorithm.Limit{}:
			t.Errorf("ParseLimit(%q) returns %+v with its error", text, got)
		case !strings.HasPrefix(err.Error(), "algorithm: limit ") || !strings.Contains(err.Error(), want):
			t.Errorf("ParseLimit(%q): %v: want %q", text, err, want)
		}
	}
}

// What String writes, ParseLimit reads.
func TestLimitString(t *testing.T) {
	for _, c := range []struct {
		limit algorithm.Limit
		want  string
	}{
		{algorithm.Limit{Count: 100, Period: 10 * time.Second}, "100/10s"},
		{algorithm.Limit{Count: 5, Period: time.Minute}, "5/min"},
		{algorithm.Limit{Count: 1000, Period: time.Hour}, "1000/h"},
		{algorithm.Limit{Count: 1, Period: 24 * time.Hour}, "1/day"},
		{algorithm.Limit{Count: 1, Period: time.Second}, "1/s"},
		{algorithm.Limit{Count: 7, Period: 90 * time.Minute}, "7/1h30m0s"},
		{algorithm.Limit{Count: 3, Period: 500 * time.Millisecond}, "3/500ms"},
		{algorithm.Limit{Count: 3, Period: 1500 * time.Microsecond}, "3/1.5ms"},
		{algorithm.Limit{Count: 3, Period: 7 * time.Microsecond}, "3/7µs"},
		{algorithm.Limit{Count: 10, Period: time.Second, Burst: 20}, "10/s burst 20"},
		{algorithm.Limit{Count: 1, Period: algorithm.MaxPeriod}, "1/312749h58m26.842624s"},
	} {
		if got := c.limit.String(); got != c.want {
			t.Errorf("%+v is %q: want %q", c.limit, got, c.want)
		}
		text, _, _ := strings.Cut(c.want, " burst ")
		want := c.limit
		want.Burst = 0
		if got, err := algorithm.ParseLimit(text); err != nil || got != want {
			t.Errorf("ParseLimit(%q) is %+v, %v: want %+v", text, got, err, want)
		}
	}
}

// No text makes a limit that Check refuses, and what is read is written and read alike.
func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{"100/10s", "5/min", "1000/h", "1/30d", "3/500ms", "7/1h30m", "1/1.5s", " 1 / 2 µs ", "NaN/s", "1e3/s", "-1/s", "1/1500ns", "1/1125899906842624us", "9999999999999999999/s", "1/-9223372036854775808us", "1/s/s", "/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := algorithm.ParseLimit(text)
		if err != nil {
			if l != (algorithm.Limit{}) {
				t.Errorf("ParseLimit(%q) returns %+v with its error", text, l)
			}
			return
		}
		if err := l.Check("algorithm"); err != nil || l.Burst != 0 {
			t.Errorf("ParseLimit(%q) is %+v: %v", text, l, err)
		}
		if again, err := algorithm.ParseLimit(l.String()); err != nil || again != l {
			t.Errorf("ParseLimit(%q) is %+v, written as %v, read again as %+v, %v", text, l, l, again, err)
		}
	})
}

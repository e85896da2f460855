package algorithmtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// Lua that differs from its Go half, fails, or returns what no store can keep is an error of the twin.
func TestTwinErrors(t *testing.T) {
	const adjust = "\nlocal function adjust(s, now, n, at, p) return {0, 0, 0}, 0 end"
	for source, want := range map[string]string{
		"local function take(":                                                                      "load",
		"local function take() return true, nil end":                                                "adjust a nil",
		"local function take(s, now, n, p) return 1, nil, 0, 0 end" + adjust:                        "allowed is a number",
		"local function take(s, now, n, p) return true, 5, 0, 0 end" + adjust:                       "kept is a number",
		"local function take(s, now, n, p) return true, {1, 2}, 0, 0 end" + adjust:                  "2 words",
		"local function take(s, now, n, p) return true, {1, 2, 0.5}, 0, 0 end" + adjust:             "word 3: is 0.5",
		"local function take(s, now, n, p) return true, {1, 2, 0/0}, 0, 0 end" + adjust:             "word 3: is NaN",
		"local function take(s, now, n, p) return true, {1, 2, -0 * 1}, 0, 0 end" + adjust:          "word 3: is -0",
		"local function take(s, now, n, p) return true, {1, 2, 2^54}, 0, 0 end" + adjust:            "within ±2^53",
		"local function take(s, now, n, p) return true, {1, 2, 3}, nil, 0 end" + adjust:             "reset: is a nil",
		"local function take(s, now, n, p) return true, {1, 2, 3}, 0, nil end" + adjust:             "remaining: is a nil",
		"local function take(s, now, n, p) return true, nil, 0, p[2] + now end" + adjust:            "nil",
		"local function take(s, now, n, p) return redis.call(1) end" + adjust:                       "key 'call'",
		"local function take(s, now, n, p) return true, {string.len(now), 2, 3}, 0, 0 end" + adjust: "string",
	} {
		twin, err := NewTwin(&algorithm.Script{Name: "x", Source: source})
		if err == nil {
			_, err = twin.Take(algorithm.State{}, 0, 1, []int64{1})
			twin.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want %q", source, err, want)
		}
	}
}

func ExampleTwin() {
	bucket, _ := tokenbucket.New(algorithm.Limit{Count: 10, Period: time.Second, Burst: 5})
	script, params := bucket.Lua()
	twin, err := NewTwin(script)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer twin.Close()
	r, err := twin.Take(algorithm.State{}, 1_700_000_000_000_000, 3, params)
	fmt.Println(r.Allowed, r.Remaining, r.Reset, *r.Kept, err)
	// Output: true 2 300000 [300000 1700000000000000 100000] <nil>
}

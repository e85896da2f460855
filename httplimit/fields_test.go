package httplimit

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
)

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want int64
	}{
		{0, 0}, {1, 1}, {time.Microsecond, 1}, {999 * time.Millisecond, 1}, {time.Second, 1},
		{time.Second + 1, 2}, {1500 * time.Millisecond, 2}, {time.Minute, 60}, {math.MaxInt64, 9223372037}, {-1, 0},
	} {
		if got := seconds(c.d); got != c.want {
			t.Errorf("seconds(%v) = %d, want %d", c.d, got, c.want)
		}
	}
}

// Names are structured-field strings: printable ASCII, with quote and backslash escaped.
func TestAppendName(t *testing.T) {
	for name, want := range map[string]string{
		"":           `""`,
		"api":        `"api"`,
		"api/a-b.c":  `"api/a-b.c"`,
		`a"b\c`:      `"a\"b\\c"`,
		"a\r\nb\x00": `"a%0D%0Ab%00"`,
		"café":       `"caf%C3%A9"`,
		"\x7f ~":     `"%7F ~"`,
	} {
		if got := string(appendName(nil, name)); got != want {
			t.Errorf("name %q is %s, want %s", name, got, want)
		}
	}
}

func TestListMembers(t *testing.T) {
	for _, c := range []struct {
		limit       sluice.Limit
		remaining   int64
		wait        time.Duration
		quota, left string
	}{
		{sluice.Limit{Count: 100, Period: time.Minute}, 50, 30 * time.Second, `"p";q=100;w=60`, `"p";r=50;t=30`},
		{sluice.Limit{Count: 10, Period: 250 * time.Millisecond}, 0, 1, `"p";q=10;w=1`, `"p";r=0;t=1`},
		{sluice.Limit{Count: 3, Period: 1500 * time.Millisecond, Burst: 9}, 9, 0, `"p";q=3;w=2`, `"p";r=9;t=0`},
		{sluice.Limit{Count: 1 << 51, Period: time.Second}, 1 << 51, 0, `"p";q=999999999999999;w=1`, `"p";r=999999999999999;t=0`},
		{sluice.Limit{Count: 1, Period: time.Second}, -1, -1, `"p";q=1;w=1`, `"p";r=0;t=0`},
	} {
		if got := string(appendQuota(nil, "p", c.limit)); got != c.quota {
			t.Errorf("%v is %s, want %s", c.limit, got, c.quota)
		}
		if got := string(appendState(nil, "p", c.remaining, c.wait)); got != c.left {
			t.Errorf("%d left, wait %v is %s, want %s", c.remaining, c.wait, got, c.left)
		}
	}
	two := appendQuota(appendQuota(nil, "a", sluice.Limit{Count: 1, Period: time.Second}), "b", sluice.Limit{Count: 2, Period: time.Second})
	if want := `"a";q=1;w=1, "b";q=2;w=1`; string(two) != want {
		t.Errorf("two members are %s, want %s", two, want)
	}
}

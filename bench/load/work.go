package load

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
)

// Work is what contenders are given to do.
type Work struct {
	Name    string // "many-128"
	Text    string // "128 callers, 10,000 keys"
	Callers int
	Keys    int
	Limit   sluice.Limit
}

// Limits are wide enough that nothing is denied, and slow enough that every key has a state to load: one that refills
// between two calls would be forgotten, and loading it would cost nothing.
var (
	hotLimit    = sluice.Limit{Count: 1e9, Period: 24 * time.Hour, Burst: 1e9}
	manyLimit   = sluice.Limit{Count: 1000, Period: time.Hour, Burst: 100_000}
	deniedLimit = sluice.Limit{Count: 100, Period: time.Second, Burst: 100}
)

// Hot is one key that all callers share, always allowed.
func Hot(callers int) Work {
	return Work{fmt.Sprintf("hot-%d", callers), caption(callers) + ", one hot key, all allowed", callers, 1, hotLimit}
}

// Denied is one key of 100 a second, so that nearly every call is denied.
func Denied(callers int) Work {
	return Work{fmt.Sprintf("denied-%d", callers), caption(callers) + ", one key mostly denied", callers, 1, deniedLimit}
}

// Many is so many keys, each call on any of them.
func Many(callers, keys int) Work {
	name := fmt.Sprintf("many-%d", callers)
	if keys != 10_000 {
		name = fmt.Sprintf("keys-%d-%d", keys, callers)
	}
	return Work{name, caption(callers) + ", " + Thousands(keys) + " keys", callers, keys, manyLimit}
}

// Works are the patterns at 1, 16, 128 and 512 callers.
func Works() []Work {
	var all []Work
	for _, callers := range []int{1, 16, 128, 512} {
		all = append(all, Hot(callers), Many(callers, 10_000), Denied(callers))
	}
	return all
}

func caption(callers int) string {
	if callers == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", callers)
}

// Keys returns n keys as addresses.
func Keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	}
	return keys
}

// Thousands writes a number with commas.
func Thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Refused is one key of 1 an hour: every call but the first is denied.
func Refused(callers int) Work {
	return Work{fmt.Sprintf("refused-%d", callers), caption(callers) + ", one key, all denied", callers, 1,
		sluice.Limit{Count: 1, Period: time.Hour, Burst: 1}}
}

// Renamed is w under another name and text.
func Renamed(w Work, name, text string) Work {
	w.Name, w.Text = name, text
	return w
}

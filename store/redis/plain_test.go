package redis

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/internal/redistest"
)

// plainOf is the plain reply that a decision of Go is.
func plainOf(d algorithm.Decision) []int64 {
	up := func(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
	reply := []int64{0, d.Remaining, up(d.RetryAfter), up(d.ResetAfter)}
	if d.Allowed {
		reply[0] = 1
	}
	if d.RetryAfter == algorithm.Never {
		reply[2] = -1
	}
	return reply
}

// plainCall sends a plain charge under the caller's clock.
func plainCall(ctx context.Context, client goredis.Cmdable, key string, st sluice.Strategy, now, n int64) *goredis.Cmd {
	_, params := st.Lua()
	args := []any{now, n}
	for _, p := range params {
		args = append(args, p)
	}
	return client.Eval(ctx, PlainSource(st), []string{key}, args...)
}

// Over the takes of all vectors a real Redis answers what Go decides, and keeps what Go keeps.
func TestPlainVectors(t *testing.T) {
	client, ctx := redistest.Shared(t).Client(), context.Background()
	folders := map[string]string{"token_bucket": "tokenbucket", "leaky_bucket": "leaky", "fixed_window": "fixedwindow", "sliding_window": "slidingwindow"}
	for name, build := range algorithms {
		files, err := filepath.Glob("../../algorithm/" + folders[name] + "/testdata/*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no vectors: %v", name, err)
		}
		calls := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			key := "plain:" + file
			var state algorithm.State
			var st sluice.Strategy
			for i, line := range strings.Split(string(text), "\n") {
				where := fmt.Sprintf("%s:%d: %s", file, i+1, line)
				word, rest, _ := strings.Cut(line, " ")
				switch {
				case word == "limit":
					st = vectorLimit(t, build, rest)
				case word == "fresh":
					state = algorithm.State{}
				case strings.HasPrefix(line, "at="):
					now, n, ok := vectorTake(t, line)
					script, _ := st.Lua()
					if ok {
						put(t, client, key, script, state)
						want, d := st.Take(state, now, n)
						got, err := plainCall(ctx, client, key, st, now, n).Int64Slice()
						if err != nil || !slices.Equal(got, plainOf(d)) {
							t.Errorf("%s\n%v, %v: want %v", where, got, err, plainOf(d))
						}
						if kept := get(t, client, key, script); kept != want {
							t.Errorf("%s\nkeeps %v: want %v", where, kept, want)
						}
						calls++
					}
					state = vectorState(t, line, script)
				}
			}
		}
		if t.Logf("%s: %d calls", name, calls); calls < 20 {
			t.Errorf("%s: %d calls: want at least 20", name, calls)
		}
	}
}

func vectorLimit(t *testing.T, build algorithmtest.New, text string) sluice.Strategy {
	t.Helper()
	rate, burst, _ := strings.Cut(text, " burst ")
	l, err := sluice.ParseLimit(rate)
	if err == nil && burst != "" {
		l.Burst, err = strconv.ParseInt(strings.TrimSpace(burst), 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	st, err := build(l)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// vectorTake reads a line's time and n; false if it is no plain take, or no n from 0 on.
func vectorTake(t *testing.T, line string) (now, n int64, ok bool) {
	t.Helper()
	fields := strings.Fields(line)
	text, ok := strings.CutPrefix(fields[1], "n=")
	if !ok {
		return 0, 0, false
	}
	at, err := time.ParseDuration(strings.TrimPrefix(fields[0], "at="))
	if err == nil {
		n, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	now = min(max(1_700_000_000_000_000+int64(at/time.Microsecond), 0), algorithm.Bound-1)
	return now, n, n >= 0
}

// vectorState reads the words that a line leaves.
func vectorState(t *testing.T, line string, script *algorithm.Script) (s algorithm.State) {
	t.Helper()
	_, words, _ := strings.Cut(line, " | ")
	for i, w := range strings.Fields(words) {
		n, err := strconv.ParseInt(strings.TrimPrefix(w, script.Words[i]+"="), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s[i] = n
	}
	return s
}

func put(t *testing.T, client *goredis.Client, key string, script *algorithm.Script, s algorithm.State) {
	t.Helper()
	ctx := context.Background()
	err := client.Del(ctx, key).Err()
	if err == nil && s != (algorithm.State{}) {
		err = client.HSet(ctx, key, script.Words[0], s[0], script.Words[1], s[1], script.Words[2], s[2]).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, client *goredis.Client, key string, script *algorithm.Script) (s algorithm.State) {
	t.Helper()
	words := client.HMGet(context.Background(), key, script.Words...)
	for i, w := range words.Val() {
		if text, ok := w.(string); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			s[i] = n
		}
	}
	return s
}

// Over random histories, with limits that are edited and words that nobody wrote, likewise. Only a reset of decades may
// differ: Go stops it 2^51 µs, 71 years, after the time in the words, and the script after now.
func TestPlainHistories(t *testing.T) {
	client, ctx := redistest.Shared(t).Client(func(o *goredis.Options) { o.ReadTimeout = time.Minute }), context.Background()
	for name, build := range algorithms {
		var state algorithm.State
		var replies []*goredis.Cmd
		var wants []algorithm.Decision
		var about []string
		pipe, key := client.Pipeline(), "plain:histories:"+name
		for _, h := range algorithmtest.Histories(7, 4000, build) {
			if h.Set != nil {
				state = *h.Set
			}
			if h.Adjust {
				state = h.Strategy.Adjust(state, h.Now, h.N, h.At)
				continue
			}
			script, _ := h.Strategy.Lua()
			pipe.Del(ctx, key)
			if state != (algorithm.State{}) {
				pipe.HSet(ctx, key, script.Words[0], state[0], script.Words[1], state[1], script.Words[2], state[2])
			}
			before := state
			var d algorithm.Decision
			state, d = h.Strategy.Take(state, h.Now, h.N)
			if h.N >= 0 {
				replies = append(replies, plainCall(ctx, pipe, key, h.Strategy, h.Now, min(h.N, algorithm.Bound)))
				wants, about = append(wants, d), append(about, fmt.Sprintf("%v of %v at %d, n=%d", h.Strategy.Limit(), before, h.Now, h.N))
			}
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		const decades = 30 * 365 * 86_400_000 // ms
		differ := 0
		for i, r := range replies {
			got, err := r.Int64Slice()
			want := plainOf(wants[i])
			if err == nil && max(got[3], want[3]) > decades {
				got[3] = want[3]
			}
			if err != nil || !slices.Equal(got, want) {
				if differ++; differ <= 5 {
					t.Errorf("%s: %s: %v, %v: want %v", name, about[i], got, err, want)
				}
			}
		}
		t.Logf("%s: %d takes, %d differ", name, len(replies), differ)
	}
}

// Plain and other callers share one budget; what can't be decided is an error, and writes nothing.
func TestPlainShares(t *testing.T) {
	client, ctx := redistest.Shared(t).Client(), context.Background()
	store := testStore(t, nil)
	for name, st := range strategies(4, time.Hour) {
		ask := sluice.Ask{Strategy: st, Key: sluice.Key{Rule: name, Subject: "s"}, N: 1}
		_, params := st.Lua()
		charge := func(n any) ([]int64, error) {
			args := []any{"", n}
			for _, p := range params {
				args = append(args, p)
			}
			return client.Eval(ctx, PlainSource(st), []string{store.KeyOf(ask)}, args...).Int64Slice()
		}
		for i := range 4 {
			var allowed bool
			var err error
			if i%2 == 0 {
				var reply []int64
				reply, err = charge(1)
				allowed = err == nil && reply[0] == 1 && reply[1] == int64(3-i)
			} else {
				var d sluice.Decision
				d, err = store.Take(ctx, ask)
				allowed = d.Allowed && d.Remaining == int64(3-i)
			}
			if err != nil || !allowed {
				t.Errorf("%s: call %d of 4: not allowed, or not with %d left: %v", name, i+1, 3-i, err)
			}
		}
		if reply, err := charge(1); err != nil || reply[0] != 0 || reply[2] <= 0 {
			t.Errorf("%s: a fifth: %v, %v: want a denial with a time", name, reply, err)
		}
		if reply, err := charge(5); err != nil || reply[2] != -1 {
			t.Errorf("%s: five at once: %v, %v: want -1", name, reply, err)
		}
		before := client.HGetAll(ctx, store.KeyOf(ask)).Val()
		for _, n := range []any{-1, "1.5", "nan", "inf", "x", ""} {
			if reply, err := charge(n); err == nil || !strings.HasPrefix(err.Error(), "COST ") {
				t.Errorf("%s: n = %v: %v, %v: want the error COST", name, n, reply, err)
			}
		}
		if after := client.HGetAll(ctx, store.KeyOf(ask)).Val(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: denials and errors leave %v of %v", name, after, before)
		}
		script, _ := st.Lua()
		client.HSet(ctx, store.KeyOf(ask), script.Words[1], "0x10")
		if reply, err := charge(1); err == nil || !strings.HasPrefix(err.Error(), "STATE ") {
			t.Errorf("%s: forged words: %v, %v: want the error STATE", name, reply, err)
		}
	}
}

// A leaky bucket's Delay follows from the plain reply, as docs/languages.md says: never less, and here the same.
func TestPlainDelay(t *testing.T) {
	client, ctx := redistest.Shared(t).Client(), context.Background()
	for _, period := range []time.Duration{time.Second, 7 * time.Second} { // 100 ms a place, and 700
		queue, err := algorithms["leaky_bucket"](sluice.Limit{Count: 10, Period: period, Burst: 10})
		if err != nil {
			t.Fatal(err)
		}
		var state algorithm.State
		const start = 1_700_000_000_000_000
		for i, n := range []int64{1, 2, 3, 1} {
			now := int64(start + i*50_000)
			var d algorithm.Decision
			state, d = queue.Take(state, now, n)
			reply, err := plainCall(ctx, client, "plain:delay:"+period.String(), queue, now, n).Int64Slice()
			if err != nil || reply[0] != 1 {
				t.Fatalf("%v, %v: want allowed", reply, err)
			}
			hold := time.Duration(reply[3])*time.Millisecond - time.Duration(n)*period/10
			if hold != d.Delay {
				t.Errorf("10 per %v, n=%d after %d: hold %v, Go %v", period, n, i, hold, d.Delay)
			}
		}
	}
}

package charging_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/charging"
	"github.com/sluice-go/sluice/policy"
)

// shop has rules with several limits, shadows among them.
func shop(t testing.TB) *policy.Rules {
	return newRules(t,
		policy.RuleConfig{Name: "next", Match: "always", Limits: []policy.LimitConfig{shadow(window("s", 5, "ip"))}},
		policy.RuleConfig{Name: "buy", Match: "/buy", Limits: []policy.LimitConfig{window("ip", 5, "ip"), shadow(window("s", 5, "ip")), window("all", 20, "global")}},
		policy.RuleConfig{Name: "see", Match: "/see", Cost: policy.CostConfig{Default: 2}, Limits: []policy.LimitConfig{window("ip", 10, "ip")}},
	)
}

// call is made of requests, given as address and path, each for what cost says, or, where that is 0, for what its rules
// say.
func call(rules *policy.Rules, cost int64, requests ...[2]string) charging.Call {
	var c charging.Call
	for _, q := range requests {
		r := from(q[0], q[1])
		first := len(c)
		c, _ = c.Add(rules.Match(r), r)
		for i := first; i < len(c) && cost > 0; i++ {
			c[i].Cost = cost
		}
	}
	return c
}

func wantAsked(t *testing.T, got []map[string]int64, want ...map[string]int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("asked %v, want %v", got, want)
	}
	for i := range want {
		if !maps.Equal(got[i], want[i]) {
			t.Errorf("call %d: asked %v, want %v", i, got[i], want[i])
		}
	}
}

// Limits of several requests are charged by one call of the store, each for its request's cost, and each answer is found
// with its limit.
func TestTakeRequests(t *testing.T) {
	store := &ledger{Store: newStore()}
	c := call(shop(t), 0, [2]string{"192.0.2.1", "/see"}, [2]string{"192.0.2.1", "/buy"}, [2]string{"192.0.2.2", "/see"})
	for i := range c {
		if c[i].Request.URL.Path == "/buy" {
			c[i].Cost = 4
		}
	}
	taken, err := c.Take(t.Context(), store)
	if err != nil || !taken.Allowed || taken.Refused != -1 {
		t.Fatalf("%+v, %v, want it allowed", taken.Verdict, err)
	}
	wantAsked(t, store.asked(), map[string]int64{"see 192.0.2.1": 2, "buy/ip 192.0.2.1": 4, "buy/all global": 4, "see 192.0.2.2": 2})
	for i, want := range []struct {
		part                        int
		rule, limit                 string
		charged, remaining, ofBurst int64
	}{
		{0, "see", "ip", 2, 8, 10}, {2, "buy", "ip", 4, 1, 5}, {2, "buy", "all", 4, 16, 20}, {4, "see", "ip", 2, 8, 10},
	} {
		part, l := c.Limit(i)
		if part != want.part || l == nil || c[part].Rule.Name != want.rule || l.Name != want.limit || l.KeyRule != taken.Asks[i].Key.Rule {
			t.Errorf("ask %d: part %d, %+v, want part %d, %s of %s", i, part, l, want.part, want.limit, want.rule)
		}
		if d := taken.Each[i]; d.Charged != want.charged || d.Remaining != want.remaining || d.Limit != want.ofBurst {
			t.Errorf("ask %d: %+v, want %+v", i, d, want)
		}
	}
	if part, l := c.Limit(4); part != -1 || l != nil {
		t.Errorf("ask 4: part %d, %v, want none", part, l)
	}
}

func TestTakeShadowsAlone(t *testing.T) {
	store := &ledger{Store: newStore()}
	taken, err := call(shop(t), 0, [2]string{"192.0.2.1", "/none"}).Take(t.Context(), store)
	if err != nil || !taken.Allowed || taken.Refused != -1 || len(taken.Asks) != 0 {
		t.Errorf("%+v, %v, want it allowed", taken, err)
	}
	wantAsked(t, store.asked())
}

// Whatever calls come, each is charged whole or not at all, and a look then answers for each limit what it would answer
// alone, and charges nothing.
func TestAllOrNone(t *testing.T) {
	const rounds = 300
	rules := shop(t)
	random := rand.New(rand.NewPCG(1, 2))
	var store *ledger
	refused, several := 0, 0
	for i := range rounds {
		if i%20 == 0 {
			store = &ledger{Store: newStore()}
		}
		var requests [][2]string
		for range 1 + random.IntN(4) {
			requests = append(requests, [2]string{fmt.Sprint("192.0.2.", random.IntN(3)), []string{"/buy", "/see"}[random.IntN(2)]})
		}
		c := call(rules, random.Int64N(3), requests...)
		seen := c.Look(t.Context(), store)
		before := make([]int64, len(seen.Asks))
		would := make([]sluice.Decision, len(seen.Asks))
		spend := map[sluice.Key]int64{}
		for j, a := range seen.Asks {
			before[j], would[j] = left(t, store, a), alone(t, store, a)
			spend[a.Key] += a.N
			wantSeen(t, seen.Each[j], would[j])
		}
		taken, err := c.Take(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		if !taken.Allowed {
			refused++
			clear(spend)
			store.asked()
			taken.Look(t.Context(), store)
			denied := 0
			for j := taken.Refused + 1; j < len(taken.Each); j++ {
				wantSeen(t, taken.Each[j], would[j])
				if !would[j].Allowed {
					denied++
				}
			}
			if n := len(store.asked()); n > denied+1 {
				t.Errorf("%d calls for %d limits that would refuse", n, denied)
			}
			several += min(denied, 1)
		}
		for j, a := range taken.Asks {
			if got := left(t, store, a); got != before[j]-spend[a.Key] {
				t.Errorf("%s: %d left of %d, want %d taken", a.Key, got, before[j], spend[a.Key])
			}
		}
	}
	if refused == 0 || refused == rounds || several == 0 {
		t.Errorf("%d of %d refused, %d by several limits: the test shows nothing", refused, rounds, several)
	}
}

// alone is what one limit would answer.
func alone(t *testing.T, s sluice.Store, a sluice.Ask) sluice.Decision {
	t.Helper()
	a.Mode = sluice.Peek
	d, err := s.Take(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantSeen(t *testing.T, got, want sluice.Decision) {
	t.Helper()
	want.Allowed = false // in a call that is refused
	if got != want {
		t.Errorf("seen %+v, want %+v", got, want)
	}
}

// What can't be looked at stays undecided, and the refusal stands; a call that passes is not looked at.
func TestLookFails(t *testing.T) {
	store := &ledger{Store: newStore()}
	c := call(shop(t), 6, [2]string{"192.0.2.1", "/see"}, [2]string{"192.0.2.1", "/buy"}, [2]string{"192.0.2.2", "/see"})
	taken, err := c.Take(t.Context(), store)
	if err != nil || taken.Allowed || taken.Refused != 1 {
		t.Fatalf("%+v, %v, want ask 1 to refuse", taken.Verdict, err)
	}
	store.fails = func([]sluice.Ask) error { return sluice.ErrUnavailable }
	was := taken.Verdict
	taken.Look(t.Context(), store)
	if taken.Decision != was.Decision || taken.Each[1].RetryAfter == 0 || taken.Each[2] != (sluice.Decision{Limit: 20}) || taken.Each[3] != (sluice.Decision{Limit: 10}) {
		t.Errorf("%+v, want what the refusal was", taken.Verdict)
	}
	if seen := c.Look(t.Context(), store); seen.Allowed || len(seen.Each) != len(seen.Asks) || seen.Each[0] != (sluice.Decision{}) {
		t.Errorf("%+v, want it undecided", seen.Verdict)
	}

	store.fails = nil
	taken, err = call(shop(t), 1, [2]string{"192.0.2.1", "/buy"}).Take(t.Context(), store)
	if err != nil || !taken.Allowed {
		t.Fatal(taken.Verdict, err)
	}
	store.asked()
	taken.Look(t.Context(), store)
	wantAsked(t, store.asked())
	if !taken.Each[0].Allowed {
		t.Errorf("%+v, want it allowed still", taken.Each)
	}
}

// A foreign store may answer anything, and nothing panics.
func TestForeignStore(t *testing.T) {
	c := call(shop(t), 0, [2]string{"192.0.2.1", "/buy"}, [2]string{"192.0.2.1", "/see"})
	for _, v := range []sluice.Verdict{
		{}, {Refused: -1}, {Refused: 99}, {Refused: 1}, {Refused: 2, Each: make([]sluice.Decision, 1)}, {Refused: -1, Each: make([]sluice.Decision, 9)},
		{Decision: sluice.Decision{Allowed: true}, Refused: -1}, {Decision: sluice.Decision{Allowed: true}, Refused: 7},
	} {
		store := foreign{v}
		taken, err := c.Take(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		if b := taken.Binding(); b < 0 || b >= len(taken.Asks) || v.Refused >= 0 && v.Refused < len(taken.Asks) && b != v.Refused {
			t.Errorf("%+v: binding %d", v, b)
		}
		taken.Look(t.Context(), store)
		c.Look(t.Context(), store)
		if c.Pass(t.Context(), store, &taken).Any() {
			t.Errorf("%+v: something to settle under rules without settle", v)
		}
	}
}

type foreign struct{ sluice.Verdict }

func (f foreign) Take(context.Context, sluice.Ask) (sluice.Decision, error) { return f.Decision, nil }

func (f foreign) TakeAll(context.Context, []sluice.Ask) (sluice.Verdict, error) {
	return f.Verdict, nil
}

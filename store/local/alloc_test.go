package local_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/storetest"
)

func TestTakeAllocatesNothing(t *testing.T) {
	for clock, now := range map[string]func() time.Time{"stepped": new(storetest.Clock).Now, "the system's": nil} {
		for _, st := range all(1000, 5000*24*time.Hour) {
			s := local.New(local.Options{Clock: now, MaxKeys: 2})
			ctx, key := context.Background(), sluice.Key{Rule: "rule", Subject: strings.Repeat("s", 128)}
			take := func(a sluice.Ask) sluice.Decision {
				d, err := s.Take(ctx, a)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			take(sluice.Ask{Strategy: st, Key: key, N: 1})
			full := sluice.Key{Rule: "rule", Subject: "full"}
			take(sluice.Ask{Strategy: st, Key: full, N: 1000})
			script, _ := st.Lua()
			for name, a := range map[string]sluice.Ask{
				"charge":       {Strategy: st, Key: key, N: 1},
				"peek":         {Strategy: st, Key: key, N: 1, Mode: sluice.Peek},
				"up to":        {Strategy: st, Key: key, N: 2, Mode: sluice.UpTo},
				"settle":       {Strategy: st, Key: key, N: -1, Mode: sluice.Settle, At: time.Now().UnixMicro()},
				"denial":       {Strategy: st, Key: full, N: 1},
				"never":        {Strategy: st, Key: full, N: 1001},
				"unseen, peek": {Strategy: st, Key: sluice.Key{Rule: "rule", Subject: "unseen"}, N: 1, Mode: sluice.Peek},
				"overflow":     {Strategy: st, Key: sluice.Key{Rule: "rule", Subject: "unseen"}, N: 1},
			} {
				if n := testing.AllocsPerRun(100, func() { take(a) }); n != 0 {
					t.Errorf("%s, %s clock: %s allocates %v times", script.Name, clock, name, n)
				}
			}
			if s.Overflows() == 0 {
				t.Error("no decision was made on the overflow state")
			}
		}
	}
}

package algorithmtest

import (
	"fmt"
	"math"

	"github.com/sluice-go/sluice/algorithm"
	lua "github.com/yuin/gopher-lua"
)

// Twin runs an algorithm's Lua half in a Lua VM of its own, with the math library alone. It is not safe for
// concurrent use.
type Twin struct {
	vm           *lua.LState
	take, adjust lua.LValue
}

// Reply is what the Lua half returns.
type Reply struct {
	Allowed   bool
	Kept      *algorithm.State // nil: nothing changed
	Reset     int64            // µs until the kept state is zero; holds only where Kept is not nil
	Remaining int64            // units that would pass now; of take alone
}

// NewTwin loads a script. Its error is the VM's: a fault of syntax, or no take and adjust.
func NewTwin(script *algorithm.Script) (*Twin, error) {
	vm := lua.NewState(lua.Options{SkipOpenLibs: true})
	vm.Push(vm.NewFunction(lua.OpenMath))
	vm.Push(lua.LString(lua.MathLibName))
	vm.Call(1, 0)
	load, err := vm.LoadString(script.Source + "\nreturn take, adjust")
	if err == nil {
		vm.Push(load)
		err = vm.PCall(0, 2, nil)
	}
	if err != nil {
		vm.Close()
		return nil, fmt.Errorf("algorithmtest: load %s: %w", script.Name, err)
	}
	t := &Twin{vm: vm, take: vm.Get(-2), adjust: vm.Get(-1)}
	vm.SetTop(0)
	if t.take.Type() != lua.LTFunction || t.adjust.Type() != lua.LTFunction {
		vm.Close()
		return nil, fmt.Errorf("algorithmtest: load %s: take is a %s and adjust a %s: want two functions",
			script.Name, t.take.Type(), t.adjust.Type())
	}
	return t, nil
}

// Close frees the VM.
func (t *Twin) Close() { t.vm.Close() }

// Take is the twin of [algorithm.Strategy.Take], with the parameters that Strategy.Lua returns. Its error says that
// the script failed or returned something other than whole numbers within ±2^53.
func (t *Twin) Take(s algorithm.State, now, n int64, p []int64) (Reply, error) {
	out, err := t.call(t.take, 4, t.list(s[:]), lua.LNumber(now), lua.LNumber(n), t.list(p))
	if err != nil {
		return Reply{}, err
	}
	r := Reply{Allowed: out[0] == lua.LTrue}
	if out[0].Type() != lua.LTBool {
		return Reply{}, fmt.Errorf("take: allowed is a %s: want a boolean", out[0].Type())
	}
	if r.Kept, r.Reset, err = kept(out[1], out[2]); err != nil {
		return Reply{}, fmt.Errorf("take: %w", err)
	}
	if r.Remaining, err = whole(out[3]); err != nil {
		return Reply{}, fmt.Errorf("take: remaining: %w", err)
	}
	return r, nil
}

// Adjust is the twin of [algorithm.Strategy.Adjust]. Its error is as Take's.
func (t *Twin) Adjust(s algorithm.State, now, n, at int64, p []int64) (Reply, error) {
	out, err := t.call(t.adjust, 2, t.list(s[:]), lua.LNumber(now), lua.LNumber(n), lua.LNumber(at), t.list(p))
	if err != nil {
		return Reply{}, err
	}
	var r Reply
	if r.Kept, r.Reset, err = kept(out[0], out[1]); err != nil {
		return Reply{}, fmt.Errorf("adjust: %w", err)
	}
	return r, nil
}

func (t *Twin) call(f lua.LValue, results int, args ...lua.LValue) ([]lua.LValue, error) {
	if err := t.vm.CallByParam(lua.P{Fn: f, NRet: results, Protect: true}, args...); err != nil {
		return nil, err
	}
	out := make([]lua.LValue, results)
	for i := range out {
		out[i] = t.vm.Get(i - results)
	}
	t.vm.SetTop(0)
	return out, nil
}

func (t *Twin) list(numbers []int64) *lua.LTable {
	l := t.vm.CreateTable(len(numbers), 0)
	for _, n := range numbers {
		l.Append(lua.LNumber(n))
	}
	return l
}

func kept(state, reset lua.LValue) (*algorithm.State, int64, error) {
	if state == lua.LNil {
		return nil, 0, nil
	}
	words, ok := state.(*lua.LTable)
	if !ok {
		return nil, 0, fmt.Errorf("kept is a %s: want a table or nil", state.Type())
	}
	if words.Len() != len(algorithm.State{}) {
		return nil, 0, fmt.Errorf("kept has %d words: want %d", words.Len(), len(algorithm.State{}))
	}
	var s algorithm.State
	for i := range s {
		w, err := whole(words.RawGetInt(i + 1))
		if err != nil {
			return nil, 0, fmt.Errorf("kept word %d: %w", i+1, err)
		}
		s[i] = w
	}
	r, err := whole(reset)
	if err != nil {
		return nil, 0, fmt.Errorf("reset: %w", err)
	}
	return &s, r, nil
}

// whole reads a number that %.0f would write as the integer it is: no fraction, and no -0.
func whole(v lua.LValue) (int64, error) {
	n, ok := v.(lua.LNumber)
	f := float64(n)
	switch {
	case !ok:
		return 0, fmt.Errorf("is a %s: want a number", v.Type())
	case f != math.Trunc(f) || math.Abs(f) > 2*algorithm.Bound || f == 0 && math.Signbit(f):
		return 0, fmt.Errorf("is %v: want a whole number within ±2^53", f)
	}
	return int64(f), nil
}

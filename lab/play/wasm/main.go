//go:build js && wasm

// Command wasm is the engine for a browser: it sets the global object "sluice", whose functions the page calls. All
// run at once, on the page's one thread, and none throws: an error is a string, empty where all went well.
//
// Times are µs, and whole numbers are JavaScript's: exact up to 2^53. Never is -1.
package main

import (
	"syscall/js"

	"github.com/sluice-go/sluice/lab/play/engine"
)

func main() {
	p := &page{}
	js.Global().Set("sluice", js.ValueOf(map[string]any{
		"fields":  export(p.fields),
		"presets": export(p.presets),
		"parse":   export(p.parse),
		"open":    export(p.open),
		"change":  export(p.change),
		"advance": export(p.advance),
		"step":    export(p.step),
		"back":    export(p.back),
		"burst":   export(p.burst),
		"redis":   export(p.redis),
		"frame":   export(p.frame),
		"trips":   export(p.trips),
		"take":    export(take),
		"adjust":  export(adjust),
	}))
	select {} // the functions stay callable
}

// export makes a JavaScript function of f. The page calls each as often as it likes, so none is released.
func export(f func(args []js.Value) any) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any { return f(args) })
}

// page is the one experiment that a page shows: a sim or a trace.
type page struct {
	sim   *engine.Sim
	trace *engine.Trace
	now   int64  // of a trace
	bytes []byte // of a frame's columns
}

func text(args []js.Value, i int) string {
	if i < len(args) && args[i].Type() == js.TypeString {
		return args[i].String()
	}
	return ""
}

// whole is a number, cut to within ±2^53.
func whole(args []js.Value, i int) int64 {
	if i >= len(args) || args[i].Type() != js.TypeNumber {
		return 0
	}
	f := args[i].Float()
	if f != f {
		return 0
	}
	return int64(min(max(f, -1<<53), 1<<53))
}

func message(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

package redis

import (
	_ "embed"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

//go:embed plain.lua
var plainLua string

// PlainSource returns the Lua of [Source] with another reply, for clients that have no half of the algorithm of their own:
// whole numbers {allowed, remaining, retry_after_ms, reset_after_ms}, as docs/languages.md has them. Key, state and
// arguments are those of Source, so that programs that send either share one budget.
func PlainSource(st sluice.Strategy) string {
	script, _ := st.Lua()
	return composePlain(script)
}

// composePlain decides by the very text of one.lua, and explains its decision from the words that it returns.
func composePlain(a *algorithm.Script) string {
	return composeCharge(a, "local function charge()\n"+oneLua+"end\n"+plainLua)
}

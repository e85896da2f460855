-- Any asks, in any mode: several at once, or one that is no plain charge. Each algorithm's file follows, then tail.lua.
local takes, adjusts, words = {}, {}, {}

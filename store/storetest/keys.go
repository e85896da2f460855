package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice"
)

var keys = []Case{{
	Name: "KeysDoNotCollide",
	Rule: "a key is two fields of any bytes and any length, and different keys have different states: no separator can be forged (L1)",
	run: func(p *probe) {
		st := sluice.Must(algorithms[0](still(1)))
		list := awkward()
		for _, k := range list {
			d, err := p.store.Take(p.ctx, ask(st, k, 1))
			p.want(err == nil, "key %s: %v", short(k), err)
			p.want(d.Allowed, "key %s was denied at first: it shares a state with a key before it", short(k))
		}
		for _, k := range list {
			p.want(!p.charge(st, k, 1).Allowed, "key %s was allowed twice: its state was lost", short(k))
		}
		for i, k := range list {
			p.reset(st, k)
			if next := (i + 1) % len(list); next > i {
				p.want(!p.peek(st, list[next], 1).Allowed, "a reset of key %s also freed key %s", short(k), short(list[next]))
			}
		}
	},
}, {
	Name: "AlgorithmsDoNotMeet",
	Rule: "a state belongs to a key and an algorithm: another algorithm on the key starts afresh, and a rollback finds the old state",
	run: func(p *probe) {
		k := p.key()
		for range 2 {
			for i, f := range algorithms {
				st := sluice.Must(f(still(int64(i + 2))))
				p.using(st)
				left := p.peek(st, k, 0).Remaining
				p.allows("a charge of 1 on a key that all algorithms use", p.charge(st, k, 1), 1, left-1)
			}
		}
		for i, f := range algorithms {
			st := sluice.Must(f(still(int64(i + 2))))
			p.using(st)
			d := p.peek(st, k, 0)
			p.want(d.Remaining == int64(i), "Remaining %d after 2 of %d, on a key that all algorithms use: want %d", d.Remaining, i+2, i)
		}
	},
}}

// awkward are keys that stores confuse, each distinct.
func awkward() []sluice.Key {
	long := strings.Repeat("x", 1<<20)
	sum := sha256.Sum256([]byte(long))
	hash := hex.EncodeToString(sum[:])
	words := []string{
		"", " ", "a", "A", "b", "ab", "a ", " a", "a:b", "b:c", ":", "::", "a:", ":b", "a/b", "/x", "5/x", "1.2.3.4", "1.2.3.45",
		"%", "%%", "%25", "%2525", "%00", "\x00", "a\x00b", "a\x00", "\n", "a\nb", "\r\n", "\t", "*", "?", "[a]", "\\", `"`, "'", "`",
		"{", "}", "{}", "}{", "{a}", "a{b}c", "a{b}d", "{a}{b}", "a{}b", "{{a}}",
		"\xff", "\xfe", "\ufffd", "\xc3", "é", "e\u0301", "日本", "$1", "${x}", "token_bucket", "token_bucket:a", "a:token_bucket",
		long, long + "y", "y" + long, long[:127], long[:128], long[:129], long[:130], strings.Repeat("%", 128), strings.Repeat("\x00", 128),
		hash, "%%" + hash, "%" + hash, strings.ToUpper(hash), string(sum[:]),
		string(sum[:]) + strings.Repeat("\x00", 97), // a hash, padded
	}
	var list []sluice.Key
	seen := map[sluice.Key]bool{}
	add := func(rule, subject string) {
		if k := (sluice.Key{Rule: rule, Subject: subject}); !seen[k] {
			seen[k] = true
			list = append(list, k)
		}
	}
	for _, w := range words {
		add("rule", w)
		add(w, "subject")
		add(w, w)
	}
	for _, pair := range [][2]string{
		{"a", "b:c"}, {"a:b", "c"}, {"", "a:b:c"}, {"a:b:c", ""}, {"a:", "b:c"}, {"a", ":b:c"},
		{"1.2.3.4", "5/x"}, {"1.2.3.45", "/x"}, {"1.2.3.4", "5"}, {"1.2.3", ".45"},
		{"a}", "{b"}, {"{a", "b}"}, {"a", "}:b"}, {"a:{", "b"}, {"a\x00", "b"}, {"a", "\x00b"},
	} {
		add(pair[0], pair[1])
	}
	return list
}

func short(k sluice.Key) string {
	cut := func(s string) string {
		if len(s) > 60 {
			return fmt.Sprintf("%q… of %d bytes", s[:20], len(s))
		}
		return fmt.Sprintf("%q", s)
	}
	return "{" + cut(k.Rule) + ", " + cut(k.Subject) + "}"
}

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// name checks the name of a rule or limit.
func (k *compiler) name(path, name string) bool {
	if name == "" {
		k.fault(path, "missing: want a name")
		return false
	}
	if msg := badName(name); msg != "" {
		k.fault(path, "%q: %s", name, msg)
		return false
	}
	return true
}

// badName says what a name should be: one that reads the same in a Redis key, in a header and as a metric's label.
func badName(name string) string {
	const most = 128
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && !strings.ContainsRune("._:@-", rune(c)) {
			return "want letters, digits and . _ : @ - alone"
		}
	}
	if len(name) > most {
		return fmt.Sprintf("%d bytes: want at most %d", len(name), most)
	}
	return ""
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// isToken tells whether s is a token of RFC 9110: what names headers, cookies and halves of media types.
func isToken(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

func isMediaType(s string) bool {
	kind, sub, _ := strings.Cut(s, "/")
	return isToken(kind) && isToken(sub)
}

func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0
}

// oneOf reports a value that is none of those wanted.
func oneOf[T ~string](k *compiler, path string, value T, want ...T) {
	if slices.Contains(want, value) {
		return
	}
	var list []string
	for _, w := range want {
		list = append(list, string(w))
	}
	k.fault(path, "%q: want one of %s", value, strings.Join(list, ", "))
}

package redis

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/sluice-go/sluice"
)

// longPart is the length in bytes beyond which a part of a key is written as its hash.
const longPart = 128

// key is <prefix>:{<subject>}:<rule>:<script name>. The braces are a hash tag: all keys of one subject lie on one
// slot of a cluster, and different subjects spread over the slots.
func (s *Store) key(k sluice.Key, script string) string {
	b := make([]byte, 0, 128) // on the stack, as most keys are shorter
	b = append(b, s.prefix...)
	b = append(b, ":{"...)
	b = appendPart(b, k.Subject)
	b = append(b, "}:"...)
	b = appendPart(b, k.Rule)
	b = append(b, ':')
	b = append(b, script...)
	return string(b)
}

// appendPart writes any bytes as A-Za-z0-9._:@/-, the others as %XX. The empty part is a lone %, since an empty hash
// tag is none, and a long one is %% and its SHA-256: no part can be written as either of these, or as another's.
func appendPart(b []byte, part string) []byte {
	switch {
	case part == "":
		return append(b, '%')
	case len(part) > longPart:
		sum := sha256.Sum256([]byte(part))
		return hex.AppendEncode(append(b, "%%"...), sum[:])
	}
	return appendPlain(b, part)
}

// appendPlain writes any bytes as A-Za-z0-9._:@/-, the others as %XX.
func appendPlain(b []byte, part string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(part) {
		if c := part[i]; plain[c] {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// plain is the bytes that stand for themselves in a key.
var plain = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@/-") {
		t[c] = true
	}
	return t
}()

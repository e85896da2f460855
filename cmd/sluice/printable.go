package main

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// printable is a text that a client may have chosen, or that was found in Redis, for a line on a terminal: as it is, or
// quoted where a part of it does not print, such as an escape sequence that rewrites the screen. What stands between the
// quotes a shell reads back as $'...'.
func printable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strings.ReplaceAll(strconv.Quote(text), "'", `\x27`)
	}
	return text
}

// causes are the errors of a Join one by one, so that each gets a line of its own.
func causes(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

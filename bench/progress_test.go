package main

import (
	"strings"
	"testing"
	"time"
)

// What is left is scaled by what parts took, and a part is printed once.
func TestProgress(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b, 100*time.Second)
	at := p.start
	p.now = func() time.Time { return at }
	p.step("first", "a")
	at = at.Add(10 * time.Second)
	p.step("first", "b")
	at = at.Add(10 * time.Second)
	p.done(10 * time.Second) // it took twice as long as planned
	p.step("second", "a")
	at = at.Add(5 * time.Second)
	p.step("third", "a")
	want := "0s, about 1m40s left: first\n20s, about 3m0s left: second\n25s, about 2m55s left: third\n"
	if b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
	p.done(100 * time.Second)
	if left := p.left(); left != 0 {
		t.Errorf("%v left after everything, want 0", left)
	}
}

package service_test

import (
	"testing"

	"github.com/sluice-go/sluice/service"
)

// A shadow beside a rule's only limit leaves that one its name and its key.
func TestLimiterBesideAShadow(t *testing.T) {
	s := open(t, write(t, "", `
rules:
  - name: api
    match: /api/
    limits:
      - {algorithm: fixed_window, limit: 2/h, subject: ip}
      - {name: next, algorithm: token_bucket, limit: 1/h, subject: ip, shadow: true}
`), service.Options{})
	l, ok := s.Limiter("api", "")
	if !ok {
		t.Fatal(`no limiter "api", "": want the limit that refuses`)
	}
	if d, err := l.Allow(t.Context(), "192.0.2.1"); err != nil || !d.Allowed || d.Limit != 2 {
		t.Errorf("%+v, %v: want the limit that refuses", d, err)
	}
	if l.Ask("x", 1).Key.Rule != "api" {
		t.Errorf("its key is of rule %q", l.Ask("x", 1).Key.Rule)
	}
	if _, ok := s.Limiter("api", "next"); !ok {
		t.Error("no limiter of the shadow")
	}
}

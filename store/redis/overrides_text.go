package redis

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// overrideEntry is an Override, and its field and value in Redis.
type overrideEntry struct {
	Override
	field, value string
}

// overrideValue is an Override's value in Redis, in the words of a rule file: what it does not know is left alone, so
// that later versions may add to it.
type overrideValue struct {
	Limit string `json:"limit"`
	Burst int64  `json:"burst,omitempty"`
	Until string `json:"until,omitempty"` // RFC 3339
}

// longOverride is the most bytes of a rule's or a subject's name, and of a value.
const longOverride = 512

// overrideField is "<rule> <subject>", both written as parts of keys are, which have no space, but never as a hash: it
// is read back.
func overrideField(rule, subject string) string {
	b := appendPlain(make([]byte, 0, 128), rule)
	return string(appendPlain(append(b, ' '), subject))
}

// encodeOverride checks o and writes it.
func encodeOverride(o Override) (overrideEntry, error) {
	switch {
	case o.Rule == "":
		return overrideEntry{}, fmt.Errorf("redis: override: Rule is empty: want Key.Rule")
	case len(o.Rule) > longOverride:
		return overrideEntry{}, fmt.Errorf("redis: override: Rule of %d bytes: want at most %d", len(o.Rule), longOverride)
	case len(o.Subject) > longOverride:
		return overrideEntry{}, fmt.Errorf("redis: override: Subject of %d bytes: want at most %d", len(o.Subject), longOverride)
	case !o.Until.IsZero() && (o.Until.UTC().Year() < 1970 || o.Until.UTC().Year() > 9999):
		return overrideEntry{}, fmt.Errorf("redis: override: Until in the year %d: want 1970 to 9999", o.Until.UTC().Year())
	}
	if err := o.Limit.Check("redis: override"); err != nil {
		return overrideEntry{}, err
	}
	v := overrideValue{Limit: algorithm.Limit{Count: o.Limit.Count, Period: o.Limit.Period}.String(), Burst: o.Limit.Burst}
	if !o.Until.IsZero() {
		v.Until = o.Until.UTC().Format(time.RFC3339Nano)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return overrideEntry{}, fmt.Errorf("redis: override: %w", err)
	}
	return overrideEntry{o, overrideField(o.Rule, o.Subject), string(text)}, nil
}

// decodeOverride reads what encodeOverride wrote, or someone by hand.
func decodeOverride(field, value string) (overrideEntry, error) {
	rule, subject, ok := strings.Cut(field, " ")
	if !ok {
		return overrideEntry{}, fmt.Errorf(`want "<rule> <subject>"`)
	}
	e := overrideEntry{field: field, value: value}
	var err error
	if e.Rule, err = url.PathUnescape(rule); err != nil {
		return e, fmt.Errorf("rule: want %%XX for each byte outside A-Za-z0-9._:@/-")
	}
	if e.Subject, err = url.PathUnescape(subject); err != nil {
		return e, fmt.Errorf("subject: want %%XX for each byte outside A-Za-z0-9._:@/-")
	}
	if overrideField(e.Rule, e.Subject) != field { // one override has one field
		return e, fmt.Errorf("want it written %.80q", overrideField(e.Rule, e.Subject))
	}
	if len(value) > longOverride {
		return e, fmt.Errorf("value of %d bytes: want at most %d", len(value), longOverride)
	}
	var v overrideValue
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		return e, fmt.Errorf(`value %.80q: want JSON such as {"limit":"100/10s"}`, value)
	}
	if e.Limit, err = algorithm.ParseLimit(v.Limit); err != nil {
		return e, err
	}
	e.Limit.Burst = v.Burst
	if v.Until != "" {
		if e.Until, err = time.Parse(time.RFC3339Nano, v.Until); err != nil {
			return e, fmt.Errorf("until %.40q: want a time such as 2027-01-01T00:00:00Z", v.Until)
		}
	}
	_, err = encodeOverride(e.Override) // its bounds
	return e, err
}

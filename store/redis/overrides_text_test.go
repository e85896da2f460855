package redis

import "testing"

// Whatever stands in Redis, reading it never panics, and what can be read is written the same.
func FuzzDecodeOverride(f *testing.F) {
	f.Add("api ip:203.0.113.7", `{"limit":"5000/10s","burst":5000,"until":"2030-01-01T00:00:00Z"}`)
	f.Add("a%20b %FF%00", `{"limit":"1/1h30m"}`)
	f.Add("a ", `{"limit":"1/us","until":"9999-12-31T23:59:59.999999999Z"}`)
	f.Add("a %", `{"limit":"1/s","until":"2030-01-01T00:00:00+23:59"}`)
	f.Fuzz(func(t *testing.T, field, value string) {
		e, err := decodeOverride(field, value)
		if err != nil {
			return
		}
		again, err := encodeOverride(e.Override)
		if err != nil || again.field != field {
			t.Fatalf("%q, %q is read as %+v, which is written %q, %v", field, value, e.Override, again.field, err)
		}
		back, err := decodeOverride(again.field, again.value)
		if err != nil || back.Rule != e.Rule || back.Subject != e.Subject || back.Limit != e.Limit || !back.Until.Equal(e.Until) {
			t.Fatalf("%+v is read back as %+v, %v", e.Override, back.Override, err)
		}
	})
}

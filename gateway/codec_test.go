package gateway_test

import (
	"fmt"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// wire is a RateLimitRequest of one descriptor, with entries key, value, key, value of any bytes, as old Envoys send it.
func wire(domain string, addend uint64, entries ...string) []byte {
	bytes := func(b []byte, number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), value)
	}
	var d []byte
	for i := 0; i < len(entries); i += 2 {
		d = bytes(d, 1, string(bytes(bytes(nil, 1, entries[i]), 2, entries[i+1])))
	}
	b := bytes(bytes(nil, 1, domain), 2, string(d))
	return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), addend)
}

// asIs is a codec that sends bytes as they are.
type asIs struct{ encoding.CodecV2 }

func (asIs) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (e envoy) send(t *testing.T, wire []byte) (*rls.RateLimitResponse, error) {
	t.Helper()
	r := &rls.RateLimitResponse{}
	return r, e.conn.Invoke(t.Context(), rls.RateLimitService_ShouldRateLimit_FullMethodName, wire, r,
		grpc.ForceCodecV2(asIs{encoding.GetCodecV2(grpcproto.Name)}))
}

// A client's bytes that are no UTF-8 are counted, each client as one of its own: Envoy lets pass what is an error.
func TestRateLimitCountsAnyBytes(t *testing.T) {
	s, _ := open(t, fmt.Sprintf(enveloped, ""))
	e := startEnvoy(t, s)
	key := func(value string) []byte {
		return wire("shop", 2, "path", "/key", "host", "shop.example", "x-api-key", value)
	}
	login := []string{"path", "/login", "method", "POST", "remote_address"}
	for _, c := range []struct {
		what string
		wire []byte
		want string
	}{
		{"one byte", key("\xff"), "OK | OK key 0"}, {"the same", key("\xff"), "OVER_LIMIT | OVER_LIMIT key 0"},
		{"another", key("\xfe"), "OK | OK key 0"}, {"its escape", key("%FE"), "OK | OK key 0"}, {"a replacement", key("\uFFFD"), "OK | OK key 0"},
		{"both", key("\xfe%FE"), "OK | OK key 0"}, {"half a rune", key("\xc3("), "OK | OK key 0"}, {"a surrogate", key("\xed\xa0\x80"), "OK | OK key 0"},
		{"in the domain", wire("\xff", 2, append(login, "192.0.2.1")...), "OK | OK login 1"},
		{"in a name", wire("shop", 2, append(login, "192.0.2.2", "\xff", "x")...), "OK | OK login 1"},
		{"in a query", wire("shop", 3, "path", "/login?\xff", "method", "POST", "remote_address", "192.0.2.3"), "OK | OK login 0"},
		{"in a path", wire("shop", 1, "path", "/log\xffin/../%6Cogin", "method", "POST", "remote_address", "192.0.2.3"), "OVER_LIMIT | OVER_LIMIT login 0"},
	} {
		r, err := e.send(t, c.wire)
		if got := text(r); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.what, got, err, c.want)
		}
	}
	r, err := e.send(t, append(wire("", 1, "path", "/free"), key("\xfd")...)) // two messages in a row are one of both
	if got := text(r); err != nil || got != "OK | OK | OK key 0" {
		t.Errorf("in the second of two descriptors: %s, %v", got, err)
	}
	whole := key("\xff")
	for cut := range whole { // no message at all, and no panic
		if _, err := e.send(t, whole[:cut]); err != nil && status.Code(err) != codes.Internal {
			t.Errorf("%d of %d bytes: %v", cut, len(whole), err)
		}
	}
}

// Whatever bytes a client sends in its query or a header, its call is decided and counted.
func FuzzRateLimitBytes(f *testing.F) {
	for _, seed := range []string{"", "\xff", "a\x00b", "\xc3\x28", "\xed\xa0\x80", "login#\xff", "?", "%zz", "\xf4\x90\x80\x80"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, query, header string) {
		if len(query)+len(header) > 1<<19 {
			t.Skip("more than a message")
		}
		s, _ := open(t, fmt.Sprintf(enveloped, ""))
		e := startEnvoy(t, s)
		for _, want := range []string{"OK | OK login 0", "OVER_LIMIT | OVER_LIMIT login 0"} {
			r, err := e.send(t, wire("", 3, "path", "/login?"+query, "x-key", header, "method", "POST", "remote_address", "192.0.2.1"))
			if got := text(r); err != nil || got != want {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		}
	})
}

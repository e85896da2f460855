package gateway

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// codec is gRPC's codec for protobuf, except that texts of a RateLimitRequest may hold any bytes. Envoy before 1.22.9
// sends the bytes of a client's header as they are (CVE-2023-27488); were they an error, Envoy would let the client pass.
// The bytes are kept and not replaced, so that two clients never become one, and both count as they would at a Check.
type codec struct{ encoding.CodecV2 }

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	if req, ok := v.(*rls.RateLimitRequest); ok && err != nil {
		return readRequest(data.Materialize(), req)
	}
	return err
}

// readRequest reads a RateLimitRequest whose texts need not be UTF-8. The domain, which says nothing, is left out.
func readRequest(b []byte, req *rls.RateLimitRequest) error {
	proto.Reset(req)
	return read(b, req, texts{
		1: func([]byte) error { return nil },
		2: func(b []byte) error {
			d := &common.RateLimitDescriptor{}
			req.Descriptors = append(req.Descriptors, d)
			return readDescriptor(b, d)
		},
	})
}

func readDescriptor(b []byte, d *common.RateLimitDescriptor) error {
	return read(b, d, texts{1: func(b []byte) error {
		e := &common.RateLimitDescriptor_Entry{}
		d.Entries = append(d.Entries, e)
		return read(b, e, texts{
			1: func(b []byte) error { e.Key = string(b); return nil },
			2: func(b []byte) error { e.Value = string(b); return nil },
		})
	}})
}

// texts read fields, by their number in Envoy's API: those that are a text, or have one in them.
type texts map[protowire.Number]func([]byte) error

// read reads a message: its texts one by one, and all other fields as they are always read.
func read(b []byte, m proto.Message, texts texts) error {
	var others []byte
	for len(b) > 0 {
		number, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		value := protowire.ConsumeFieldValue(number, kind, b[tag:])
		if value < 0 {
			return protowire.ParseError(value)
		}
		field := b[:tag+value]
		b = b[tag+value:]
		text := texts[number]
		if text == nil || kind != protowire.BytesType {
			others = append(others, field...)
			continue
		}
		inner, _ := protowire.ConsumeBytes(field[tag:])
		if err := text(inner); err != nil {
			return err
		}
	}
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(others, m)
}

package grpclimit

import (
	"context"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// said is what a handler has said of its cost: the values of some keys in the metadata that it set, whether or not it
// still reaches the client, who may have left. It is safe for concurrent use, as gRPC's own setting is.
type said struct {
	names []string // canonical, as http.Header has them
	mu    sync.Mutex
	heard http.Header // trailers under http.TrailerPrefix, as net/http has them
}

// listen returns a context in which grpc.SetHeader, SendHeader and SetTrailer are also heard by what is returned with
// it. Outside gRPC there is nothing to hear.
func listen(ctx context.Context, names []string) (context.Context, *said) {
	s := &said{names: names, heard: http.Header{}}
	inner := grpc.ServerTransportStreamFromContext(ctx)
	if inner == nil {
		return ctx, s
	}
	return grpc.NewContextWithServerTransportStream(ctx, &transport{ServerTransportStream: inner, said: s}), s
}

// note keeps those values of md that are asked for, under prefix.
func (s *said) note(prefix string, md metadata.MD) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		if values := md.Get(name); len(values) > 0 {
			s.heard[prefix+name] = append(s.heard[prefix+name], values...)
		}
	}
}

// header returns a copy of what was heard.
func (s *said) header() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.Clone()
}

// transport is gRPC's stream as the functions of package grpc find it in a context, overheard.
type transport struct {
	grpc.ServerTransportStream
	said *said
}

func (t *transport) SetHeader(md metadata.MD) error {
	t.said.note("", md)
	return t.ServerTransportStream.SetHeader(md)
}

func (t *transport) SendHeader(md metadata.MD) error {
	t.said.note("", md)
	return t.ServerTransportStream.SendHeader(md)
}

func (t *transport) SetTrailer(md metadata.MD) error {
	t.said.note(http.TrailerPrefix, md)
	return t.ServerTransportStream.SetTrailer(md)
}

// stream is a handler's stream, overheard.
type stream struct {
	grpc.ServerStream
	ctx  context.Context
	said *said
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) SetHeader(md metadata.MD) error {
	s.said.note("", md)
	return s.ServerStream.SetHeader(md)
}

func (s *stream) SendHeader(md metadata.MD) error {
	s.said.note("", md)
	return s.ServerStream.SendHeader(md)
}

func (s *stream) SetTrailer(md metadata.MD) {
	s.said.note(http.TrailerPrefix, md)
	s.ServerStream.SetTrailer(md)
}

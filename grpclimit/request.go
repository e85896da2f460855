package grpclimit

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// request shows a call as the HTTP/2 request that carries it, but for its header, which matching does not need: see
// [header]. The path is the method as it came, since gRPC finds the handler by just that.
func request(ctx context.Context, method string) *http.Request {
	r := &http.Request{
		Method: http.MethodPost,
		URL:    &url.URL{Path: method},
		Proto:  "HTTP/2.0", ProtoMajor: 2,
		Body: http.NoBody,
	}
	if authority := metadata.ValueFromIncomingContext(ctx, ":authority"); len(authority) == 1 {
		r.Host = authority[0]
	}
	if p, ok := peer.FromContext(ctx); ok {
		if p.Addr != nil {
			r.RemoteAddr = p.Addr.String()
		}
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			r.TLS = &info.State
		}
	}
	return r.WithContext(ctx)
}

// header returns the call's metadata as header fields. Values of -bin keys, which gRPC has decoded, are encoded again:
// a proxy in front sees them so, and counts the same subject.
func header(ctx context.Context) http.Header {
	md, _ := metadata.FromIncomingContext(ctx) // a copy, with keys in lower case
	h := make(http.Header, len(md))
	for key, values := range md {
		if strings.HasPrefix(key, ":") || key == "host" {
			continue
		}
		if strings.HasSuffix(key, "-bin") {
			for i, v := range values {
				values[i] = base64.RawStdEncoding.EncodeToString([]byte(v))
			}
		}
		h[http.CanonicalHeaderKey(key)] = values
	}
	return h
}

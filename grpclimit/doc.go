// Package grpclimit puts limits in front of gRPC services, and paces calls to others'.
//
// [Unary] and [Stream] are one limiter in front of a server. [New] applies a whole set of rules: it matches the call,
// takes all limits of all rules that hold with one [sluice.TakeAll], and lets the call pass or refuses it. [NewClient]
// makes outgoing calls wait for their turn. With Current of a service.Service, New follows a rule file as it changes.
//
// # Rules
//
// Rules are those of package policy, so that one rule file serves HTTP and gRPC, on the same keys. They see a call as the
// HTTP/2 request that carries it:
//
//	method    POST
//	path      /package.Service/Method, as it came: gRPC decodes nothing in it
//	host      :authority
//	headers   the metadata; a -bin value in base64 without padding, however it was sent
//	address   the peer's; from a trusted proxy, that of x-forwarded-for
//
// So "POST /shop.v1.Cart/Checkout" is one method, "/shop.v1.Cart/" a service, and "/" all of them. A call is charged
// once, when it begins: what a stream sends later is not counted. Calls to methods that the server does not have are
// answered by gRPC itself, and not counted, unless it has an UnknownServiceHandler.
//
// # Refusals
//
// A call that a limit refuses is RESOURCE_EXHAUSTED, with a RetryInfo, unless no wait helps, and a QuotaFailure that
// names the limit; and with grpc-retry-pushback-ms in the trailer, which gRPC's own retries obey. One that a rule's deny
// lists is PERMISSION_DENIED. A store that cannot decide is UNAVAILABLE; a caller that has left while the store was
// asked, or while it was held for a leaky bucket, is CANCELLED or DEADLINE_EXCEEDED. The handler is then not called. A
// rule's own body of type text/plain is the status message; its status and other types are for HTTP alone.
//
// # Settling
//
// A rule with settle, such as response:X-Actual-Cost, is charged again, or given back, once the handler has returned and
// has said in the metadata x-actual-cost what the call cost: in the trailer, else in the header. For such a call alone
// the handler's stream is wrapped, so that grpc.SetSendCompressor and grpc.ClientSupportedCompressors, which want gRPC's
// own, return an error there.
package grpclimit

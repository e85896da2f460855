package grpclimit

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// refusal is the answer to a call that a limit refused.
type refusal struct {
	ask     sluice.Ask    // the one that was refused
	subject string        // who is counted, such as "ip"; not the client's own key, which may tell of proxies between
	message string        // "": what happened
	wait    time.Duration // until the same call would pass, or sluice.Never
}

// send sets the trailer and returns the status.
func (f refusal) send(ctx context.Context) error {
	_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", pushback(f.wait))) // fails outside gRPC alone
	limit, rule := f.ask.Strategy.Limit(), strings.ToValidUTF8(f.ask.Key.Rule, "\uFFFD") // of a rule in code, any bytes
	message := f.message
	if message == "" {
		message = "rate limit exceeded: " + rule
	}
	details := []protoadapt.MessageV1{&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
		Subject:     f.subject,
		Description: fmt.Sprintf("%s: at most %v", rule, limit),
		QuotaId:     rule,
		QuotaValue:  limit.Count,
	}}}}
	if f.wait != sluice.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.wait)})
	}
	st := status.New(codes.ResourceExhausted, message)
	if whole, err := st.WithDetails(details...); err == nil { // else the code alone: it says enough
		st = whole
	}
	return st.Err()
}

// pushback is what gRPC's own retries read: milliseconds to wait, or below 0 for never.
func pushback(wait time.Duration) string {
	ms := wait / time.Millisecond
	switch {
	case wait == sluice.Never:
		ms = -1
	case wait%time.Millisecond > 0:
		ms++
	}
	return strconv.FormatInt(int64(min(ms, math.MaxInt32)), 10)
}

// forbidden answers a call that a rule's deny lists.
func forbidden(rule *policy.Rule) error {
	message := ownMessage(rule.Forbidden)
	if message == "" {
		message = "call not permitted"
	}
	return status.Error(codes.PermissionDenied, message)
}

// ownMessage is a rule's own text for the client, "" where it has none that fits a status message.
func ownMessage(d policy.Denial) string {
	const longest = 1024 // bytes: it travels in a header
	kind, _, _ := strings.Cut(d.Type, ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "text/plain") || len(d.Body) > longest {
		return ""
	}
	return strings.ToValidUTF8(d.Body, "\uFFFD")
}

// undecided answers for a store that could not decide. The cause is for the operator and stays out of the answer. A
// client whose own time is over, or who has left, gets the status for that.
func undecided(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return left(err)
	}
	return status.Error(codes.Unavailable, "rate limit can't be decided now")
}

// left answers a client who has left, or whose time is over: err is its context's.
func left(err error) error { return status.FromContextError(err).Err() }

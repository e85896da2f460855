package gateway

import (
	"math"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice"
)

// response is the answer to a call that is decided.
func (c *call) response() *rls.RateLimitResponse {
	r := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	for i, denied := range c.denied {
		s := &rls.RateLimitResponse_DescriptorStatus{Code: rls.RateLimitResponse_OK, DurationUntilReset: durationpb.New(0)}
		if !c.shadow {
			if a := c.binding(i); a != nil {
				describe(s, a)
			}
			if denied != nil {
				s.Code = rls.RateLimitResponse_OVER_LIMIT
				c.body(r, denied.Forbidden.Body, denied.Forbidden.Type)
			}
			if s.Code == rls.RateLimitResponse_OVER_LIMIT {
				r.OverallCode = s.Code
			}
		}
		r.Statuses = append(r.Statuses, s)
	}
	if c.refused != nil && !c.shadow {
		if d := c.refused.decision; d.RetryAfter != sluice.Never {
			seconds := max(1, int64((d.RetryAfter+time.Second-1)/time.Second))
			r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, &core.HeaderValue{Key: "retry-after", Value: strconv.FormatInt(seconds, 10)})
		}
		c.body(r, c.refused.rule.Denial.Body, c.refused.rule.Denial.Type)
	}
	return r
}

// body is the rule's own, of the first that refuses.
func (c *call) body(r *rls.RateLimitResponse, body, contentType string) {
	if body == "" || r.RawBody != nil {
		return
	}
	r.RawBody = []byte(body)
	r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, &core.HeaderValue{Key: "content-type", Value: contentType})
}

// binding is the limit of a descriptor that tells most: the first that refuses, else the one with the least remaining;
// nil if there is none.
func (c *call) binding(descriptor int) *asked {
	var least *asked
	for _, a := range c.asked {
		switch {
		case a.descriptor != descriptor || a.limit.Shadow:
			continue
		case a.over():
			return a
		case least == nil || a.decision.Remaining < least.decision.Remaining:
			least = a
		}
	}
	return least
}

// describe tells of one limit in Envoy's words.
func describe(s *rls.RateLimitResponse_DescriptorStatus, a *asked) {
	l := a.ask.Strategy.Limit()
	unit, multiplier := unitOf(l.Period)
	s.CurrentLimit = &rls.RateLimitResponse_RateLimit{Name: a.limit.KeyRule, RequestsPerUnit: small(l.Count), Unit: unit}
	if multiplier > 1 {
		s.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(multiplier)
	}
	s.LimitRemaining = small(a.decision.Remaining)
	s.DurationUntilReset = durationpb.New(until(a.decision))
	if a.over() {
		s.Code = rls.RateLimitResponse_OVER_LIMIT
	}
}

// unitOf returns a period in the largest unit that it is a whole number of; unknown where there is none.
func unitOf(period time.Duration) (unit rls.RateLimitResponse_RateLimit_Unit, multiplier uint32) {
	for _, u := range []struct {
		unit rls.RateLimitResponse_RateLimit_Unit
		is   time.Duration
	}{
		{rls.RateLimitResponse_RateLimit_DAY, 24 * time.Hour},
		{rls.RateLimitResponse_RateLimit_HOUR, time.Hour},
		{rls.RateLimitResponse_RateLimit_MINUTE, time.Minute},
		{rls.RateLimitResponse_RateLimit_SECOND, time.Second},
	} {
		if period >= u.is && period%u.is == 0 {
			return u.unit, small(int64(period / u.is))
		}
	}
	return rls.RateLimitResponse_RateLimit_UNKNOWN, 0
}

// small is n within 32 bits.
func small(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

package httplimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/store/local"
)

// api answers calls in turn, and says when each came.
type api struct {
	start   time.Time
	came    []time.Duration
	answers []http.Response
}

func (a *api) RoundTrip(*http.Request) (*http.Response, error) {
	a.came = append(a.came, time.Since(a.start))
	res := http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
	if len(a.answers) > 0 {
		res, a.answers = a.answers[0], a.answers[1:]
	}
	res.Body = http.NoBody
	return &res, nil
}

func refusal(status int, retryAfter string) http.Response {
	return http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}}
}

func TestTransport(t *testing.T) {
	for name, c := range map[string]struct {
		answers []http.Response
		want    []time.Duration // when calls arrive
	}{
		"the limit":        {nil, []time.Duration{0, 0, time.Second, 2 * time.Second}},
		"seconds":          {[]http.Response{refusal(429, "5")}, []time.Duration{0, 5 * time.Second, 5 * time.Second, 6 * time.Second}},
		"a date":           {[]http.Response{refusal(503, "Sat, 01 Jan 2000 00:00:07 GMT")}, []time.Duration{0, 7 * time.Second, 7 * time.Second, 8 * time.Second}},
		"the longer holds": {[]http.Response{refusal(429, "5"), refusal(429, "1")}, []time.Duration{0, 5 * time.Second, 6 * time.Second, 6 * time.Second}},
		"nonsense":         {[]http.Response{refusal(429, "-5"), refusal(429, "soon")}, []time.Duration{0, 0, time.Second, 2 * time.Second}},
		"without end":      {[]http.Response{refusal(429, "99999999999999999999")}, []time.Duration{0, time.Hour, time.Hour, time.Hour + time.Second}},
		"another status":   {[]http.Response{refusal(200, "5")}, []time.Duration{0, 0, time.Second, 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock starts with the year 2000
				far := &api{start: time.Now(), answers: c.answers}
				limit := sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Second, Burst: 2}))
				client := http.Client{Transport: httplimit.Transport(far, sluice.New(local.New(local.Options{}), limit, "out"), "api")}
				for range c.want {
					res, err := client.Get("http://api.example/")
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
				}
				for i, want := range c.want {
					if far.came[i] != want {
						t.Errorf("call %d came at %v: want %v", i, far.came[i], want)
					}
				}
			})
		})
	}
}

// closed tells whether a body was closed.
type closed struct {
	io.Reader
	was bool
}

func (c *closed) Close() error { c.was = true; return nil }

func TestTransportDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &api{start: time.Now(), answers: []http.Response{refusal(429, "60")}}
		limit := sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Second, Burst: 2}))
		out := httplimit.Transport(far, sluice.New(local.New(local.Options{}), limit, "out"), "api")
		call := func(ctx context.Context) error {
			body := &closed{Reader: strings.NewReader("x")}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example/", body)
			if err != nil {
				t.Fatal(err)
			}
			_, err = out.RoundTrip(r)
			if err != nil && !body.was {
				t.Error("a failed call leaves the body open")
			}
			return err
		}
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != 0 {
			t.Errorf("%v after %v: want DeadlineExceeded at once", err, time.Since(before))
		}
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if err := call(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func ExampleTransport() {
	limit := sluice.Must(tokenbucket.New(sluice.Limit{Count: 100, Period: time.Minute, Burst: 10}))
	toBank := sluice.New(local.New(local.Options{}), limit, "bank")
	client := http.Client{Transport: httplimit.Transport(nil, toBank, "payments")}
	_ = client // its calls wait for their turn
}

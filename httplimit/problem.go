package httplimit

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// quotaExceeded is the problem type that draft-ietf-httpapi-ratelimit-headers registers.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// problem is a body of type application/problem+json (RFC 9457).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Violated []string `json:"violated-policies,omitempty"` // names of limits, as in the RateLimit field
}

// exceeded is the problem of a denial by the named limit, "" where the name is not known.
func exceeded(status int, limit string) problem {
	p := problem{
		Type:   quotaExceeded,
		Title:  "Request cannot be satisfied as assigned quota has been exceeded",
		Status: status,
	}
	if limit != "" {
		p.Violated = []string{fieldName(limit)}
	}
	return p
}

// unavailable answers for a store that could not decide: 503, not to be cached. The cause is for the operator and
// stays out of the answer.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	writeProblem(w, plain(http.StatusServiceUnavailable))
}

// plain is a problem that says no more than its status.
func plain(status int) problem {
	title := http.StatusText(status)
	if title == "" {
		title = "Refused"
	}
	return problem{Type: "about:blank", Title: title, Status: status}
}

func writeProblem(w http.ResponseWriter, p problem) {
	body, err := json.Marshal(p)
	if err != nil { // strings and an int: cannot happen
		body = []byte("{}")
	}
	writeBody(w, p.Status, "application/problem+json", append(body, '\n'))
}

// writeBody writes a whole response. What the chain before may have set for another body is dropped.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Del("Content-Encoding")
	h.Del("ETag")
	h.Del("Last-Modified")
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone is no fault
}

package gateway

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// parameters returns what r says: in its query, and of a POST in a form, too. Those that are not known, that are empty, or
// that are there twice, unless they are the one called several, are an error: what an operator meant by them would not
// happen. The error holds no value, which may be a secret.
func parameters(r *http.Request, several string, known ...string) (url.Values, error) {
	if err := readable(r); err != nil {
		return nil, err
	}
	for name, values := range r.Form {
		switch {
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("parameter %q: unknown: want one of %s", name, strings.Join(known, ", "))
		case slices.Contains(values, ""):
			return nil, fmt.Errorf("%s: empty: give it a value, or leave it out", name)
		case len(values) > 1 && name != several:
			return nil, fmt.Errorf("%s: given %d times: want it once", name, len(values))
		}
	}
	return r.Form, nil
}

// readable parses the query and the form of r, or tells why that can't be.
func readable(r *http.Request) error {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return errors.New("query: can't be read: want NAME=VALUE with & between, percent-encoded")
	}
	if r.ContentLength != 0 {
		const form = "application/x-www-form-urlencoded"
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case r.Method != http.MethodPost:
			return fmt.Errorf("body: %s has none: want parameters in the query", r.Method)
		case err != nil || kind != form:
			return errors.New("Content-Type: want " + form + ", or no body and parameters in the query")
		}
	}
	err := r.ParseForm()
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("body: too long: want at most %d bytes", tooLong.Limit)
	}
	if err != nil {
		return errors.New("body: can't be read: want NAME=VALUE with & between, percent-encoded")
	}
	return nil
}

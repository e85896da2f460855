package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// Subject says who is limited: it returns the Subject of a request's Key, or "" where the request has none. Those of
// this package are safe for concurrent use, never panic, and return texts that differ for different kinds of subject.
//
// What a client sends in a header, cookie or query is not verified here: a client that makes up a new value for each
// request is a new subject each time. Limit by ip as well.
type Subject func(*http.Request) string

// Global returns the subject "global": all requests share it.
func Global() Subject { return func(*http.Request) string { return "global" } }

// Header returns the subject of the header's first value: "header:" and a hash, so that secrets never become keys.
// It is "" where the header is absent or blank. Spaces around the value do not count, nor do spaces and letter case
// around the scheme of an Authorization, where servers ignore them too.
func Header(name string) Subject {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string {
		value := r.Header.Get(name)
		if name == "Host" { // net/http moves it
			value = r.Host
		}
		return headerSubject(name, value)
	}
}

// headerSubject is the subject of a value of the header with that canonical name.
func headerSubject(name, value string) string {
	if name == "Authorization" || name == "Proxy-Authorization" {
		value = oneSpelling(value)
	}
	return hashed("header", name, value)
}

// oneSpelling writes credentials the one way: scheme in lower case, one space, token.
func oneSpelling(credentials string) string {
	credentials = strings.TrimSpace(credentials)
	i := strings.IndexAny(credentials, " \t")
	if i < 0 {
		return credentials
	}
	return strings.ToLower(credentials[:i]) + " " + strings.TrimSpace(credentials[i:])
}

// Cookie returns the subject of the cookie's value, hashed as Header's is: "" where it is absent or blank.
func Cookie(name string) Subject {
	return func(r *http.Request) string {
		c, err := r.Cookie(name)
		if err != nil {
			return ""
		}
		return hashed("cookie", name, c.Value)
	}
}

// Query returns the subject of the query parameter's first value, hashed as Header's is: "" where it is absent or
// blank. A form in the body is not read.
func Query(name string) Subject {
	return func(r *http.Request) string {
		if r.URL == nil {
			return ""
		}
		return hashed("query", name, queryValue(r.URL.RawQuery, name))
	}
}

// queryValue is url.ParseQuery(query).Get(name), without the map.
func queryValue(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" || strings.Contains(pair, ";") {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(k); err != nil || k != name {
			continue
		}
		if v, err := url.QueryUnescape(v); err == nil {
			return v
		}
	}
	return ""
}

// Path returns the subject of a wildcard's value in the pattern that a ServeMux matched: "path:" and the value, or a
// hash where that is long. It is "" outside a mux. In [Rules], path:WILDCARD is the wildcard of the rule's own pattern
// instead, so that it also works in front of the mux.
func Path(wildcard string) Subject {
	return func(r *http.Request) string { return pathSubject(wildcard, r.PathValue(wildcard)) }
}

// pathSubject bounds the length of a key by hashing what is long; "path#" can't begin a value that is not.
func pathSubject(wildcard, value string) string {
	const longest = 64
	switch {
	case value == "":
		return ""
	case len(value) > longest:
		return hashed("path#", wildcard, value)
	}
	return "path:" + value
}

// Or returns first, or second where first is "": a header that is absent falls back to the address.
func Or(first, second Subject) Subject {
	return func(r *http.Request) string {
		if s := first(r); s != "" {
			return s
		}
		return second(r)
	}
}

// hashed returns kind and 128 bits of the SHA-256 of name and value, in hex; "" for a blank value.
func hashed(kind, name, value string) string {
	value = strings.TrimSpace(value)
	if value == "" {
		return ""
	}
	b := make([]byte, 0, 256)
	b = append(b, name...)
	b = append(b, 0) // ends the name, which holds none
	b = append(b, value...)
	sum := sha256.Sum256(b)
	return kind + ":" + hex.EncodeToString(sum[:16])
}

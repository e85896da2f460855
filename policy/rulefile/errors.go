package rulefile

import (
	"fmt"
	"strings"
)

// Error is one fault of a file.
type Error struct {
	File         string
	Line, Column int    // from 1
	Field        string // such as rules[1].limits[0].limit; "" for the file as a whole
	Msg          string // the value, and what was wanted
}

// Error returns file:line:column: field: message.
func (e Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Msg
}

// Errors are all faults of a file in the order of their places; after the hundredth a last one counts those left out.
type Errors []Error

// Error returns a line a fault.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/policy"
)

type position struct{ line, column int }

// decoder walks the nodes of a file. It keeps where each field stands, and goes on after a fault.
type decoder struct {
	file   string
	at     map[string]position // field -> place of its value
	faults Errors
	unread map[string]bool // fields whose value could not be read
	dead   bool            // the file as a whole can't be read: its fields say nothing
}

// fault reports that the value of field, at n, can't be read, so that nothing else is to be said about it.
func (d *decoder) fault(n *yaml.Node, field, format string, args ...any) {
	d.unread[field] = true
	d.note(n, field, format, args...)
}

// note reports a fault that leaves the field's value, if it has one, readable.
func (d *decoder) note(n *yaml.Node, field, format string, args ...any) {
	d.faultAt(position{n.Line, n.Column}, field, format, args...)
}

func (d *decoder) faultAt(p position, field, format string, args ...any) {
	d.faults = append(d.faults, Error{File: d.file, Line: p.line, Column: p.column, Field: field, Msg: fmt.Sprintf(format, args...)})
}

// broken reports a fault of the file as a whole.
func (d *decoder) broken(p position, format string, args ...any) {
	d.dead = true
	d.faultAt(p, "", format, args...)
}

// locate adds the faults that policy.New found, but for those of fields that could not be read: New has not seen what
// they say.
func (d *decoder) locate(err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, err := range joined.Unwrap() {
		fe, ok := errors.AsType[*policy.FieldError](err)
		if ok && !d.hidden(fe.Path) {
			d.faultAt(d.place(fe.Path), fe.Path, "%s", fe.Msg)
		}
	}
}

// hidden tells whether a field, or what it lies in, could not be read.
func (d *decoder) hidden(path string) bool {
	for ; path != ""; path = parent(path) {
		if d.unread[path] {
			return true
		}
	}
	return false
}

// place returns where a field stands or, if it is missing, what should have it.
func (d *decoder) place(path string) position {
	for {
		if p, ok := d.at[path]; ok {
			return p
		}
		path = parent(path)
	}
}

// parent cuts the last field or index off a path: rules[0].limits[1] gives rules[0].limits, then rules[0], rules, "".
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// errors returns the faults in order of their places, bounded; nil if there are none.
func (d *decoder) errors() error {
	const most = 100
	if len(d.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(d.faults, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if left := len(d.faults) - most; left > 0 {
		d.faults = d.faults[:most]
		last := d.faults[most-1]
		d.faultAt(position{last.Line, last.Column}, "", "and %d more faults", left)
	}
	return d.faults
}

// field is a name that a mapping may have, and what reads its value.
type field struct {
	name string
	read func(n *yaml.Node, path string)
}

// mapping reads the fields of n and reports those that are unknown or set twice.
func (d *decoder) mapping(n *yaml.Node, path string, fields ...field) {
	if !d.is(n, path, yaml.MappingNode, "fields") {
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.AliasNode:
			d.fault(key, path, "alias *%s: not supported: write it out", key.Value)
			continue
		case key.ShortTag() == "!!merge":
			d.fault(key, path, "merge key <<: not supported: write the fields out")
			continue
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.note(key, path, "want the name of a field, have %s", kind(key))
			continue
		}
		at := join(path, key.Value)
		if line, twice := lines[key.Value]; twice {
			d.note(key, at, "set twice, first on line %d", line)
			continue
		}
		lines[key.Value] = key.Line
		known := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		switch {
		case known >= 0:
			d.at[at] = position{value.Line, value.Column}
			fields[known].read(value, at)
		default:
			d.note(key, at, "unknown field: want one of %s", names(fields))
		}
	}
}

func names(fields []field) string {
	var list []string
	for _, f := range fields {
		list = append(list, f.name)
	}
	return strings.Join(list, ", ")
}

// join appends a field's name to a path, in quotes if it would read as something else.
func join(path, name string) string {
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		name = fmt.Sprintf("%q", name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// list calls read with each element of n.
func (d *decoder) list(n *yaml.Node, path string, read func(n *yaml.Node, path string)) {
	if !d.is(n, path, yaml.SequenceNode, "a list") {
		return
	}
	for i, e := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.at[at] = position{e.Line, e.Column}
		read(e, at)
	}
}

// is reports a node that is not of the kind wanted.
func (d *decoder) is(n *yaml.Node, path string, want yaml.Kind, what string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fault(n, path, "alias *%s: not supported: write the value out", n.Value)
	case n.Kind == want && (want != yaml.ScalarNode || n.ShortTag() != "!!null"):
		return true
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		d.fault(n, path, "no value: want %s", what)
	default:
		d.fault(n, path, "want %s, have %s", what, kind(n))
	}
	return false
}

// kind words what a node is.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return fmt.Sprintf("the number %s", short(n.Value))
	case "!!bool":
		return short(n.Value)
	case "!!null":
		return "nothing"
	case "!!str":
		return fmt.Sprintf("the text %q", short(n.Value))
	}
	return fmt.Sprintf("%q of type %s", short(n.Value), short(n.ShortTag()))
}

// short keeps a value from filling the message.
func short(s string) string {
	const most = 64
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

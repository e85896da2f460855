// Package rulefile reads the rules of package policy from YAML, and reports every fault of a file at once, each with
// its line and column.
//
// Fields are those of policy.Config, in lower case with underscores. Two things are shorter than in code: a limit is
// written as "100/10s", and a burst that is left out is the count. One document, at most [MaxSize] bytes, without
// aliases. docs/rules.md explains every field, and [Schema] lets editors complete and check them.
package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/policy"
)

// MaxSize is the most bytes that a rule file may have: 1 MiB, some ten thousand rules.
const MaxSize = 1 << 20

// Load reads and parses the file at path. A file that can't be read gives an error that wraps the cause; one that can
// gives what Parse gives.
func Load(path string) (policy.Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return policy.Config{}, fmt.Errorf("rulefile: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return policy.Config{}, fmt.Errorf("rulefile: %w", err)
	}
	return Parse(path, data)
}

// Parse reads rules from data. Name is the file's in errors. The Config is valid: policy.New takes it, if the variables
// and files that it names can be read; Parse reads none. Any fault gives
// the zero Config and an error of type [Errors]; Parse never panics, whatever data holds.
func Parse(name string, data []byte) (policy.Config, error) {
	d := &decoder{file: name, at: map[string]position{"": {1, 1}}, unread: map[string]bool{}}
	c := d.parse(data)
	if !d.dead {
		d.locate(c.Check())
	}
	if err := d.errors(); err != nil {
		return policy.Config{}, err
	}
	return c, nil
}

// parse returns what data says, as far as it can be read.
func (d *decoder) parse(data []byte) policy.Config {
	if len(data) > MaxSize {
		d.broken(position{1, 1}, "want at most %d bytes", MaxSize)
		return policy.Config{}
	}
	if i := notText(data); i >= 0 {
		r, _ := utf8.DecodeRune(data[i:])
		what := fmt.Sprintf("byte 0x%02x is not UTF-8", data[i])
		if r != utf8.RuneError {
			what = fmt.Sprintf("control character %U", r)
		}
		d.broken(offset(data, i), "%s: want UTF-8 text", what)
		return policy.Config{}
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.broken(position{1, 1}, "%v", err)
		return policy.Config{}
	}
	var first, second yaml.Node
	if !d.load(loader, &first) {
		return policy.Config{}
	}
	if len(first.Content) != 1 || first.Content[0].ShortTag() == "!!null" && first.Content[0].Kind == yaml.ScalarNode {
		d.broken(position{1, 1}, "empty: want at least a rule under rules")
		return policy.Config{}
	}
	c := d.config(first.Content[0])
	if more := d.loadMore(loader, &second); more {
		d.note(&second, "", "a second document: want one in a file")
	}
	return c
}

// load reads the first document and reports what keeps it from being read.
func (d *decoder) load(loader *yaml.Loader, n *yaml.Node) bool {
	err := loader.Load(n)
	if errors.Is(err, io.EOF) {
		d.broken(position{1, 1}, "empty: want at least a rule under rules")
		return false
	}
	return d.syntax(err)
}

// loadMore tells whether there is another document.
func (d *decoder) loadMore(loader *yaml.Loader, n *yaml.Node) bool {
	err := loader.Load(n)
	return !errors.Is(err, io.EOF) && d.syntax(err)
}

// syntax reports an error of the YAML parser, which stops at its first.
func (d *decoder) syntax(err error) bool {
	if err == nil {
		return true
	}
	at, msg := position{1, 1}, err.Error()
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		msg = le.Message
		if le.ContextMsg != "" {
			msg = le.ContextMsg + ": " + msg
		}
		if le.Mark.Line > 0 {
			at = position{le.Mark.Line, max(1, le.Mark.Column)}
		}
	}
	d.broken(at, "not YAML: %s", msg)
	return false
}

// notText returns the index of the first byte that no YAML text holds, or -1.
func notText(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return i
		}
		i += size
	}
	return -1
}

// offset turns a byte index into a position.
func offset(data []byte, i int) position {
	line := bytes.LastIndexByte(data[:i], '\n') + 1
	return position{bytes.Count(data[:i], []byte("\n")) + 1, utf8.RuneCount(data[line:i]) + 1}
}

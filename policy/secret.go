package policy

import (
	"io"
	"os"
	"strings"
)

// maxSecret is the most bytes of a file that holds a secret.
const maxSecret = 64 << 10

// reveal returns what a configured value stands for: "env:NAME" is the value of a variable, "file:PATH" the content of
// a file, both without the spaces around them; any other text is itself. It is false where that can't be read, which
// is a fault, and where the compiler is to leave secrets alone. No message holds a value.
func (k *compiler) reveal(path, text string) (value string, ok bool) {
	kind, where, named := strings.Cut(text, ":")
	switch {
	case !named || kind != "env" && kind != "file":
		return text, true
	case strings.TrimSpace(where) == "" && kind == "env":
		k.fault(path, `"env:" has no name: want the name of an environment variable after it`)
		return "", false
	case strings.TrimSpace(where) == "":
		k.fault(path, `"file:" has no path: want the path of a file after it`)
		return "", false
	case !k.secrets:
		return "", false
	}
	from, problem := "environment variable "+where, ""
	if kind == "env" {
		value = os.Getenv(where)
	} else {
		from = "file " + where
		value, problem = readSecret(where)
	}
	value = strings.TrimSpace(value)
	switch {
	case problem != "":
	case value == "":
		problem = "is not set or empty"
	case strings.ContainsAny(value, "\r\n"):
		problem = "has several lines"
	default:
		return value, true
	}
	k.fault(path, "%s %s: want one line with the value", from, problem)
	return "", false
}

// readSecret returns a file's content, or what keeps it from being read.
func readSecret(path string) (content, problem string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", "can't be read"
	case !info.Mode().IsRegular(): // a pipe would be waited for
		return "", "is no regular file"
	}
	f, err := os.Open(path)
	if err != nil {
		return "", "can't be read"
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", "can't be read"
	case len(b) > maxSecret:
		return "", "is larger than 64 KiB"
	}
	return string(b), ""
}

package service

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
)

// text is a rule file as it was read at once: what is hashed is what is parsed.
type text struct {
	data []byte
	hash string // SHA-256 in hex, as sha256sum prints it; of err where that is not nil
	err  error  // why it could not be read
}

// read reads what must be a regular file, or a link to one, since it is read again and again. It looks before it opens: to
// open a device may do something.
func read(path string) text {
	info, err := os.Stat(path)
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return unread(err)
	}
	return readOpened(path)
}

// readOpened is read without the first look, which another file may have been put in place after. It looks at what it has
// opened: to open a pipe that nobody writes to would block for ever, but for nonblock.
func readOpened(path string) text {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return unread(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return unread(err)
	}
	data, err := io.ReadAll(io.LimitReader(f, rulefile.MaxSize+1)) // Parse says what is wrong with more
	if err != nil {
		return unread(err)
	}
	return text{data: data, hash: hash(data)}
}

func regular(path string, info os.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("rule file %s: %s: want a regular file", path, kind(info.Mode()))
}

// kind names what a file is that is not a regular one.
func kind(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

func unread(err error) text {
	return text{hash: hash([]byte(err.Error())), err: fmt.Errorf("service: %w", err)}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// rules compiles a text that could be read. The error is of type rulefile.Errors where it is faulty.
func (t text) rules(path string) (*policy.Rules, error) {
	config, err := rulefile.Parse(path, t.data)
	if err != nil {
		return nil, err
	}
	return policy.New(config)
}

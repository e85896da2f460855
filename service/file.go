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

func read(path string) text {
	f, err := os.Open(path)
	if err != nil {
		return unread(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, rulefile.MaxSize+1)) // Parse says what is wrong with more
	if err != nil {
		return unread(err)
	}
	return text{data: data, hash: hash(data)}
}

func unread(err error) text {
	return text{hash: hash([]byte(err.Error())), err: fmt.Errorf("service: %w", err)}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// rules compiles the text. The error is of type rulefile.Errors where the text is faulty.
func (t text) rules(path string) (*policy.Rules, error) {
	if t.err != nil {
		return nil, t.err
	}
	config, err := rulefile.Parse(path, t.data)
	if err != nil {
		return nil, err
	}
	return policy.New(config)
}

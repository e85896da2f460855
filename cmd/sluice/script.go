package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

type script struct {
	Algorithm string `arg:"" help:"Name of the algorithm, as in a rule file."`
}

func (script) Help() string {
	return fmt.Sprintf(`Prints the script of one decision, ready for EVAL or SCRIPT LOAD by a client in any language.
Algorithms: %s.

Example:

    sluice script token_bucket
    redis-cli SCRIPT LOAD "$(sluice script token_bucket)"`, strings.Join(policy.Algorithms(), ", "))
}

// Run prints the script. The limit is a parameter of a call and no part of the text, so that any will do.
func (c script) Run(s streams) error {
	st, err := policy.NewStrategy(c.Algorithm, sluice.Limit{Count: 1, Period: time.Second, Burst: 1})
	if err != nil {
		return misuse{fmt.Errorf("sluice: script: %w", err)}
	}
	_, err = io.WriteString(s.out, redis.Source(st))
	return err
}

package main

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

type script struct {
	Algorithm string `arg:"" help:"Name of the algorithm, as in a rule file."`
	Reply     string `enum:"words,plain" default:"words" help:"words: what was charged and the state before it, for clients that have the arithmetic. plain: allowed, remaining, retry_after_ms, reset_after_ms. Default: ${default}."`
	Limit     string `placeholder:"RATE" help:"As in a rule file, such as 100/10s. With it, SHA and arguments are printed before the script."`
	Burst     int64  `help:"Most units at one instant. Default: the count of --limit."`
	Rule      string `help:"Rule, or rule/limit where the rule has several limits, as explain shows it. With it and --subject, the key and a line for redis-cli are printed too."`
	Subject   string `help:"Who, as in keys; global where the limit is global."`
	N         int64  `name:"n" default:"1" help:"Units to charge. Default: ${default}."`
	Prefix    string `default:"sluice" help:"Of keys, as in the rule file's store. Default: ${default}."`
	JSON      bool   `help:"Answer with one JSON object."`
}

func (script) Help() string {
	return fmt.Sprintf(`Prints the script of one decision, ready for EVAL or SCRIPT LOAD by a client in any language. Programs that send it for one
key share one budget with the Go ones, whichever reply they choose.
Algorithms: %s.

Example:

    sluice script token_bucket
    sluice script token_bucket --reply plain | redis-cli -x SCRIPT LOAD
    sluice script token_bucket --limit 5/min --burst 10 --rule login --subject 192.0.2.1 --reply plain`,
		strings.Join(policy.Algorithms(), ", "))
}

// Run prints the script, and with a limit the call.
func (c script) Run(s streams) error {
	call, err := c.call()
	if err != nil {
		return misuse{fmt.Errorf("sluice: script: %w", err)}
	}
	if c.JSON {
		return printJSON(s.out, call)
	}
	if c.Limit != "" {
		call.write(s.out)
	}
	_, err = io.WriteString(s.out, call.Script)
	return err
}

// call composes the script, and the call where there is a limit. The limit is a parameter of the call and no part of
// the text, so that without one any will do.
func (c script) call() (scriptCall, error) {
	limit := sluice.Limit{Count: 1, Period: time.Second, Burst: 1}
	if c.Limit != "" {
		var err error
		if limit, err = sluice.ParseLimit(c.Limit); err != nil {
			return scriptCall{}, fmt.Errorf("--limit: %w", err)
		}
		if limit.Burst = c.Burst; limit.Burst == 0 && policy.HasBurst(c.Algorithm) {
			limit.Burst = limit.Count
		}
	}
	switch {
	case c.Limit == "" && (c.Burst != 0 || c.Rule != "" || c.Subject != ""):
		return scriptCall{}, errors.New("--burst, --rule and --subject: want --limit with them")
	case (c.Rule == "") != (c.Subject == ""):
		return scriptCall{}, errors.New("--rule and --subject: want both, since a key has both")
	case c.N < 0:
		return scriptCall{}, fmt.Errorf("--n %d: want at least 0", c.N)
	case strings.ContainsAny(c.Prefix, "{}"):
		return scriptCall{}, fmt.Errorf("--prefix %q: want no brace", c.Prefix)
	}
	st, err := policy.NewStrategy(c.Algorithm, limit)
	if err != nil {
		return scriptCall{}, err
	}
	algorithm, params := st.Lua()
	call := scriptCall{Algorithm: algorithm.Name, Reply: c.Reply, Script: redis.Source(st)}
	if c.Reply == "plain" {
		call.Script = redis.PlainSource(st)
	}
	sum := sha1.Sum([]byte(call.Script)) // what Redis names scripts by
	call.SHA = hex.EncodeToString(sum[:])
	if c.Limit == "" {
		return call, nil
	}
	call.Argv = []string{"", strconv.FormatInt(c.N, 10)}
	for _, p := range params {
		call.Argv = append(call.Argv, strconv.FormatInt(p, 10))
	}
	if c.Rule != "" {
		store := redis.New(nil, redis.Options{Prefix: c.Prefix}) // asked for a key alone
		ask := sluice.Ask{Strategy: st, Key: sluice.Key{Rule: c.Rule, Subject: c.Subject}}
		call.Keys = []string{store.KeyOf(ask)}
		call.RedisCLI = call.line()
	}
	return call, nil
}

// scriptCall is what script prints: a script, and one call of it where a limit was given.
type scriptCall struct {
	Algorithm string   `json:"algorithm"` // as it ends the key
	Reply     string   `json:"reply"`
	SHA       string   `json:"sha"` // of script, byte for byte
	Keys      []string `json:"keys,omitempty"`
	Argv      []string `json:"argv,omitempty"` // now, which is the server's clock; n; the parameters
	RedisCLI  string   `json:"redis_cli,omitempty"`
	Script    string   `json:"script"`
}

// line loads the script and calls it, in a shell. A pipe keeps the text byte for byte, so that the SHA is the printed
// one: "$(...)" would cut its last newline.
func (c scriptCall) line() string {
	argv := append([]string{"''"}, c.Argv[1:]...)
	return fmt.Sprintf("sluice script %s --reply %s | redis-cli -x SCRIPT LOAD && redis-cli EVALSHA %s 1 %s %s",
		c.Algorithm, c.Reply, c.SHA, quote(c.Keys[0]), strings.Join(argv, " "))
}

// quote is text as one word of a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// write prints all but the script, which follows it to the end. An argument that is empty shows as "".
func (c scriptCall) write(w io.Writer) {
	fmt.Fprintf(w, "sha     %s\n", c.SHA)
	if len(c.Keys) > 0 {
		fmt.Fprintf(w, "keys    %s\n", printable(c.Keys[0]))
	}
	fmt.Fprintf(w, "argv    \"\" %s\n", strings.Join(c.Argv[1:], " "))
	if c.RedisCLI != "" {
		fmt.Fprintf(w, "paste   %s\n", c.RedisCLI)
	}
	fmt.Fprintln(w, "script")
}

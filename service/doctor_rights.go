package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice"
)

// rights does what a service does, and tells what the user may not do.
func (d *doctor) rights(ctx context.Context, beats bool) {
	var failed []string
	var first error
	try := func(what string, err error) {
		if err != nil && !slices.Contains(failed, what) {
			failed = append(failed, what)
			first = cmp.Or(first, err)
		}
	}
	for _, st := range d.strategies() {
		ask := d.ask(st, subject())
		got, err := d.store.Take(ctx, ask)
		try("charge", err)
		if err == nil {
			ask.Mode, ask.N, ask.At = sluice.Settle, -1, got.At
			_, err = d.store.Take(ctx, ask)
			try("settle", err)
		}
		ask.Mode, ask.N = sluice.Reset, 0
		_, err = d.store.Take(ctx, ask)
		try("reset", err)
	}
	if beats {
		_, err := d.store.Heartbeat(ctx, subject()) // Close of the store signs off
		try("heartbeat", err)
	}
	_, err := d.store.Overrides(ctx)
	try("overrides", err)
	lacking := d.lacking(ctx, beats)
	if len(lacking) > 0 && len(failed) > 0 {
		d.fail("rights", fmt.Sprintf("the user lacks %s: %s fails", strings.Join(lacking, " "), strings.Join(failed, ", ")), d.grant(lacking))
		return
	}
	if first != nil {
		d.fail("rights", fmt.Sprintf("%s: %v", strings.Join(failed, ", "), first), "see the lines above; a user needs the rights of docs/operations.md on the keys "+d.rules.Config().Store.Prefix+":*")
		return
	}
	if len(lacking) > 0 {
		d.warn("rights", fmt.Sprintf("the user lacks %s: sluice override can't set or clear as this user", strings.Join(lacking, " ")), d.grant(lacking)+", or run it as another")
		return
	}
	d.ok("rights", "each algorithm of the rules, the heartbeat and overrides work")
}

// grant is the command that gives the user the rights.
func (d *doctor) grant(rights []string) string {
	name := "default"
	if d.node != nil {
		name = cmp.Or(d.node.Options().Username, name)
	}
	return "ACL SETUSER " + name + " " + strings.Join(rights, " ")
}

// commands are those that the scripts call, with arguments that suit a key of the doctor's own.
func commands(beats bool) [][]any {
	list := [][]any{
		{"time"}, {"hmget", "a"}, {"hset", "a", 1}, {"pexpire", 1000}, {"hgetall"}, {"hlen"}, {"hdel", "a"}, {"del"},
	}
	if beats {
		list = append(list, [][]any{{"zadd", 1, "a"}, {"zcard"}, {"zremrangebyscore", "-inf", "-inf"}, {"zrem", "a"}}...)
	}
	return list
}

// lacking tries each command in a script, where its own error does not say which one is refused, and returns the rights
// that the user lacks, such as +hset.
func (d *doctor) lacking(ctx context.Context, beats bool) []string {
	const script = `local args = { ARGV[1] }
if ARGV[1] ~= 'time' then args[2] = KEYS[1] end
for i = 2, #ARGV do args[#args + 1] = ARGV[i] end
local reply = redis.pcall(unpack(args))
return type(reply) == 'table' and reply.err or ''`
	key := d.store.KeyOf(d.ask(d.strategies()[0], subject()))
	var lacking []string
	for _, command := range commands(beats) {
		said, err := d.client.Eval(ctx, script, []string{key}, command...).Text()
		if err != nil { // said elsewhere
			continue
		}
		if lacksRight(said) {
			lacking = append(lacking, fmt.Sprintf("+%s", command[0]))
		}
	}
	return lacking
}

// lacksRight tells whether an answer of a server, in any of its versions' words, is that a user may not run a command.
func lacksRight(said string) bool {
	return strings.Contains(said, "can't run this command") || strings.Contains(said, "NOPERM") || strings.Contains(said, "no permissions to run")
}

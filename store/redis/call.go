package redis

import (
	"context"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
)

// once is a command that no client sends twice: a lost reply may belong to a charge that was made.
type once struct{ *goredis.Cmd }

// NoRetry says so to go-redis.
func (once) NoRetry() bool { return true }

// call is one command on its way.
type call struct {
	state atomic.Int32 // running, then ended or abandoned, whichever is first
	done  chan struct{}
	reply any
	err   error
}

const (
	running = iota
	ended
	abandoned
)

// run executes a script on keys, the first of args, and returns its reply by the store's timeout or the caller's end.
//
// The client notices no cancellation while it reads, and one that was handed in may notice no deadline either, so
// the command runs beside the caller, and is left behind if it hangs.
func (s *Store) run(ctx context.Context, c *composed, keys int, args []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.abandoned.Load() >= maxAbandoned {
		return nil, errAbandoned
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()

	cl := &call{done: make(chan struct{})}
	go func() {
		cl.reply, cl.err = s.eval(ctx, c, keys, args)
		if !cl.state.CompareAndSwap(running, ended) {
			s.abandoned.Add(-1)
		}
		close(cl.done)
	}()
	select {
	case <-cl.done:
		return cl.reply, cl.err
	case <-ctx.Done():
	}
	s.abandoned.Add(1)
	if !cl.state.CompareAndSwap(running, abandoned) { // it has just ended
		s.abandoned.Add(-1)
		<-cl.done
		return cl.reply, cl.err
	}
	return nil, ctx.Err()
}

// eval sends the script's name, once more where an old connection refuses, and the script itself to a server that does
// not know it.
func (s *Store) eval(ctx context.Context, c *composed, keys int, args []any) (any, error) {
	reply, err := s.send(ctx, "evalsha", c.sha, keys, args)
	for range oldConnections { // each is dropped, and has executed nothing: see batch.again
		if !goredis.IsReadOnlyError(err) {
			break
		}
		reply, err = s.send(ctx, "evalsha", c.sha, keys, args)
	}
	if noScript(err) {
		return s.send(ctx, "eval", c.source, keys, args)
	}
	return reply, err
}

func (s *Store) send(ctx context.Context, name, script string, keys int, args []any) (any, error) {
	all := make([]any, 0, 3+len(args))
	cmd := once{goredis.NewCmd(ctx, append(append(all, name, script, keys), args...)...)}
	cmd.SetFirstKeyPos(3)
	if err := s.client.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}

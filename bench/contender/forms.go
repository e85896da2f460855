package contender

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/redis"
)

// Forms returns one script of this module, the one of a single charge, sent by its name and sent whole: what EVALSHA
// spares.
func Forms() []Contender {
	return []Contender{
		{"EVALSHA", "the script's SHA-1", Floor, form((*goredis.Script).EvalSha)},
		{"EVAL", "the script's text", Floor, form((*goredis.Script).Eval)},
	}
}

type evaluate func(s *goredis.Script, ctx context.Context, c goredis.Scripter, keys []string, args ...any) *goredis.Cmd

func form(send evaluate) func(string, sluice.Limit) (Limiter, error) {
	return func(addr string, l sluice.Limit) (Limiter, error) {
		st, err := tokenbucket.New(l)
		if err != nil {
			return Limiter{}, fmt.Errorf("contender: %w", err)
		}
		client := goredis.NewClient(&goredis.Options{Addr: addr})
		script := goredis.NewScript(redis.Source(st))
		if err := script.Load(context.Background(), client).Err(); err != nil {
			_ = client.Close()
			return Limiter{}, fmt.Errorf("contender: SCRIPT LOAD: %w", err)
		}
		_, params := st.Lua()
		args := []any{"", 1}
		for _, p := range params {
			args = append(args, p)
		}
		return Limiter{
			Take: func(ctx context.Context, key string) (bool, error) {
				err := send(script, ctx, client, []string{"sluice:{" + key + "}:form:token_bucket"}, args...).Err()
				return err == nil, err
			},
			Close: client.Close,
		}, nil
	}
}

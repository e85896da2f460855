package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stats are a server's counters. All but CPU and Memory run from the last [Nodes.Reset].
type Stats struct {
	CPU        time.Duration // user and system time of the process since it started
	In, Out    int64         // bytes read from clients and written to them
	Memory     int64         // bytes allocated
	Scripts    int64         // calls of EVAL and EVALSHA
	ScriptTime time.Duration // spent in them
}

// Stats reads the counters.
func (s *Server) Stats(ctx context.Context) (Stats, error) {
	info, err := s.info(ctx, "all")
	if err != nil {
		return Stats{}, err
	}
	st := Stats{
		CPU: seconds(info["used_cpu_user"]) + seconds(info["used_cpu_sys"]),
		In:  whole(info["total_net_input_bytes"]), Out: whole(info["total_net_output_bytes"]),
		Memory: whole(info["used_memory"]),
	}
	for _, name := range []string{"eval", "evalsha"} {
		fields := map[string]string{}
		for field := range strings.SplitSeq(info["cmdstat_"+name], ",") {
			k, v, _ := strings.Cut(field, "=")
			fields[k] = v
		}
		st.Scripts += whole(fields["calls"])
		st.ScriptTime += time.Duration(whole(fields["usec"])) * time.Microsecond
	}
	return st, nil
}

// Version returns the server's name and version.
func (s *Server) Version(ctx context.Context) (string, error) {
	info, err := s.info(ctx, "server")
	if err != nil {
		return "", err
	}
	if v := info["valkey_version"]; v != "" {
		return "Valkey " + v, nil
	}
	return "Redis " + info["redis_version"], nil
}

func (s *Server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.Ask.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("server: INFO %s: %w", section, err)
	}
	return parseInfo(text), nil
}

// parseInfo reads the lines name:value of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func whole(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // a field that a server lacks counts as 0
	return n
}

func seconds(text string) time.Duration {
	s, _ := strconv.ParseFloat(text, 64)
	return time.Duration(s * float64(time.Second))
}

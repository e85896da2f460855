package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/sluice-go/sluice/bench/report"
	"github.com/sluice-go/sluice/bench/server"
)

// machine says where this runs, without names of hosts or users.
func machine(ctx context.Context, s *server.Server) (report.Machine, error) {
	redis, err := s.Version(ctx)
	if err != nil {
		return report.Machine{}, err
	}
	return report.Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), System: system(ctx), Go: strings.Replace(runtime.Version(), "go", "Go ", 1), Redis: redis,
	}, nil
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

// system is the kernel and its version.
func system(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "uname", "-sr").Output()
	if err != nil {
		return runtime.GOOS
	}
	return strings.TrimSpace(string(out))
}

package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/child"
)

// StartSentinel runs one sentinel that watches a master under a name and fails it over after 400 ms without an answer.
// It returns its address once it answers, and is killed when t ends. Replicas that the master has are found by it.
func StartSentinel(t testing.TB, master *Server, name string) string {
	t.Helper()
	binary, err := find()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	addr, err := freeAddr(false)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	_, port, _ := net.SplitHostPort(addr)
	masterHost, masterPort, _ := net.SplitHostPort(master.Addr)
	dir := t.TempDir()
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf(`port %s
bind 127.0.0.1
dir %s
sentinel monitor %s %s %s 1
sentinel down-after-milliseconds %[3]s 400
sentinel failover-timeout %[3]s 3000
`, port, dir, name, masterHost, masterPort)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	proc, err := child.Start(exec.Command(binary, conf, "--sentinel"))
	if err != nil {
		t.Fatalf("redistest: sentinel: %v", err)
	}
	t.Cleanup(proc.Kill)
	client := goredis.NewSentinelClient(&goredis.Options{Addr: addr, MaintNotificationsConfig: quiet()})
	defer client.Close()
	for deadline := time.Now().Add(startTime); client.Ping(context.Background()).Err() != nil; time.Sleep(pollTime) {
		if proc.Ended() || time.Now().After(deadline) {
			t.Fatalf("redistest: sentinel: no answer on %s within %v", addr, startTime)
		}
	}
	return addr
}

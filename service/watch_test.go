package service_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/service"
)

// await waits until ok is true of the status; a failure says what the status is then.
func await(t *testing.T, s *service.Service, what string, ok func(service.Status) bool) {
	t.Helper()
	for give := time.Now().Add(20 * time.Second); !ok(s.Status()); time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("%s: not within 20 s; status is %+v", what, s.Status())
		}
	}
}

// link makes name a link to target, in one step, as Kubernetes does.
func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+"_tmp", name); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// However a file changes, its rules are those that run soon after, and their hash is seen.
func TestWatch(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, path, text string){
		"in place": func(t *testing.T, path, text string) { write(t, path, text) },
		"in parts": func(t *testing.T, path, text string) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, c := range []byte(text) {
				if _, err := f.Write([]byte{c}); err != nil {
					t.Fatal(err)
				}
			}
		},
		"renamed": func(t *testing.T, path, text string) {
			write(t, path+".new", text)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"removed and written": func(t *testing.T, path, text string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			write(t, path, text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "", rules(1))
			s := open(t, path, service.Options{Watch: true}.Quickly())
			before := s.Status()
			for i := range 3 {
				edit(t, path, rules(10+i))
				policy := fmt.Sprintf(`"api";q=%d;w=60`, 10+i)
				await(t, s, policy, func(service.Status) bool { return get(s, "/").Header.Get("RateLimit-Policy") == policy })
			}
			after := s.Status()
			if after.Hash == before.Hash || len(after.Hash) != 64 || !after.Loaded.After(before.Loaded) || after.LastError != "" {
				t.Errorf("status was %+v and is %+v: want another hash and a later time, and no error", before, after)
			}
		})
	}
}

// A ConfigMap is a directory of links to ..data/FILE, where ..data is a link to a directory that is replaced.
func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(n, count int) {
		write(t, filepath.Join(mkdir(t, filepath.Join(dir, fmt.Sprintf("..version%d", n))), "rules.yaml"), rules(count))
		link(t, fmt.Sprintf("..version%d", n), filepath.Join(dir, "..data"))
		_ = os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..version%d", n-1)))
	}
	version(1, 1)
	path := filepath.Join(dir, "rules.yaml")
	link(t, filepath.Join("..data", "rules.yaml"), path)
	s := open(t, path, service.Options{Watch: true}.Quickly())
	for n := 2; n < 6; n++ {
		version(n, 10*n)
		policy := fmt.Sprintf(`"api";q=%d;w=60`, 10*n)
		await(t, s, policy, func(service.Status) bool { return get(s, "/").Header.Get("RateLimit-Policy") == policy })
	}
}

// What no directory tells is seen by looking: an edit behind a link, and a directory that is made anew.
func TestWatchLooks(t *testing.T) {
	elsewhere := write(t, "", rules(1))
	dir := mkdir(t, filepath.Join(t.TempDir(), "sluice"))
	path := filepath.Join(dir, "rules.yaml")
	link(t, elsewhere, path)
	s := open(t, path, service.Options{Watch: true}.Quickly().Looking(10*time.Millisecond))
	await4 := func(count int) {
		t.Helper()
		policy := fmt.Sprintf(`"api";q=%d;w=60`, count)
		await(t, s, policy, func(service.Status) bool { return get(s, "/").Header.Get("RateLimit-Policy") == policy })
	}
	write(t, elsewhere, rules(2))
	await4(2)

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	await(t, s, "the file has gone", func(st service.Status) bool { return strings.Contains(st.LastError, "no such file") })
	if got := get(s, "/").Header.Get("RateLimit-Policy"); got != `"api";q=2;w=60` {
		t.Errorf("without a file the policy is %s, want the last", got)
	}
	write(t, filepath.Join(mkdir(t, dir), "rules.yaml"), rules(3))
	await4(3)
}

// A refused file is reported once, with its lines; the same rules put back are no fault any more.
func TestWatchRefuses(t *testing.T) {
	path := write(t, "", rules(1))
	var log quiet
	s := open(t, path, service.Options{Watch: true, Logger: log.logger()}.Quickly().Looking(5*time.Millisecond))
	hash := s.Status().Hash
	write(t, path, "headers: loud\n"+rules(0))
	await(t, s, "refused", func(st service.Status) bool { return st.LastError != "" })
	st := s.Status()
	for _, want := range []string{path + ":1:10: headers: ", path + ":3:"} {
		if !strings.Contains(st.LastError, want) {
			t.Errorf("LastError %q, want %q in it", st.LastError, want)
		}
	}
	if st.Hash != hash || st.Refused.IsZero() {
		t.Errorf("status %+v: want the hash of what runs, %s, and the time of the refusal", st, hash)
	}
	time.Sleep(100 * time.Millisecond) // twenty looks
	if n := strings.Count(log.String(), "is refused"); n != 1 {
		t.Errorf("reported %d times, want once:\n%s", n, &log)
	}
	write(t, path, rules(1))
	await(t, s, "put back", func(st service.Status) bool { return st.LastError == "" })
	if st := s.Status(); st.Hash != hash || !st.Refused.IsZero() {
		t.Errorf("status %+v: want the first hash, and no refusal", st)
	}
}

// Without Watch nothing is read until Reload; after Close nothing is either.
func TestWatchOff(t *testing.T) {
	path := write(t, "", rules(1))
	s := open(t, path, service.Options{}.Quickly())
	watching := open(t, path, service.Options{Watch: true}.Quickly())
	if err := watching.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, rules(2))
	time.Sleep(50 * time.Millisecond)
	for _, s := range []*service.Service{s, watching} {
		if got := s.Rules().All()[0].Limits[0].Strategy.Limit().Count; got != 1 {
			t.Errorf("limit %d, want 1", got)
		}
	}
}

// Under 500 requests a second the file is edited 50 times, ten of them broken: each request is answered, no edit
// hands out a fresh burst, and each broken one is reported with its line and column.
func TestReloadWhileServing(t *testing.T) {
	server := redistest.Start(t)
	for name, where := range map[string]string{"in process": "", "redis": fmt.Sprintf("store: {redis: 'redis://%s', timeout: 10s}\n", server.Addr)} {
		t.Run(name, func(t *testing.T) {
			const rate, burst = 100, 50
			text := func(edit int) string {
				broken := ""
				if edit%5 == 3 {
					broken = ", burts: 1"
				}
				return fmt.Sprintf("%srules:\n  - name: api\n    match: /\n    limits:\n      - {algorithm: token_bucket, limit: %d/s, burst: %d, subject: global%s}  # edit %d\n",
					where, rate, burst-edit%2, broken, edit)
			}
			place := fmt.Sprintf("rules.yaml:%d:%d: ", strings.Count(where, "\n")+5, 77) // of burts
			path := write(t, "", text(0))
			var log quiet
			s := open(t, path, service.Options{Watch: true, Logger: log.logger()}.Quickly())
			front := httptest.NewServer(s.Middleware(ok))
			defer front.Close()

			var passed, refused atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			done, start := make(chan struct{}), time.Now()
			go func() {
				defer close(done)
				client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 10 * time.Second}
				defer client.CloseIdleConnections()
				request(t, ctx, 500, func() {
					resp, err := client.Get(front.URL)
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
					switch resp.StatusCode {
					case http.StatusOK:
						passed.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
					default:
						t.Errorf("status %d", resp.StatusCode)
					}
				})
			}()
			for edit := 1; edit <= 50; edit++ {
				was := s.Status()
				write(t, path, text(edit))
				await(t, s, fmt.Sprintf("edit %d", edit), func(st service.Status) bool {
					if edit%5 == 3 {
						return st.Refused.After(was.Refused) && strings.Contains(st.LastError, place)
					}
					return st.Hash != was.Hash
				})
				time.Sleep(20 * time.Millisecond)
			}
			cancel()
			<-done
			took := time.Since(start)
			most := burst + rate*took.Seconds()
			t.Logf("%d passed and %d were refused in %v: %.3f of burst + rate·t", passed.Load(), refused.Load(), took.Round(time.Millisecond), float64(passed.Load())/most)
			if n := float64(passed.Load()); n > most+1 || n < 0.8*most {
				t.Errorf("%v passed, want at most %.0f and not much less", n, most)
			}
			if total := passed.Load() + refused.Load(); float64(total) < 400*took.Seconds() {
				t.Errorf("%d requests in %v: want about 500 a second", total, took)
			}
			if n := strings.Count(log.String(), place); n != 10 {
				t.Errorf("%d refusals are logged with %s, want 10:\n%s", n, place, &log)
			}
		})
	}
}

// request calls f rate times a second, beside each other, until ctx ends, and waits for all of them.
func request(t *testing.T, ctx context.Context, rate int, f func()) {
	t.Helper()
	slots := make(chan struct{}, 64)
	gap := time.Second / time.Duration(rate)
	for next := time.Now(); ctx.Err() == nil; next = next.Add(gap) {
		time.Sleep(time.Until(next))
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			f()
		}()
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
}

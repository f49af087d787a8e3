package serving_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

// quick limits are small enough to be reached in a test, and large enough for a handshake on a busy machine.
func quick() serving.Limits {
	return serving.Limits{
		Body: 64 << 10, Memory: 768 << 10, Requests: 40, Connections: 40, Read: 2 * time.Second, Answer: 5 * time.Second,
	}
}

// 150 requests whose body never ends, each on a connection of its own, end within the limit of time.
func TestStalledRequests(t *testing.T) {
	limits := quick()
	limits.Connections, limits.Requests = 400, 400
	g := start(t, serving.Options{Limits: limits})
	var ended sync.WaitGroup
	begin := time.Now()
	for range 150 {
		c, err := tls.DialWithDialer(dialer("127.0.0.1"), "tcp", g.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		ended.Add(1)
		go func() {
			defer ended.Done()
			_, _ = io.Copy(io.Discard, c)
		}()
	}
	late, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() { ended.Wait(); close(done) }()
	select {
	case <-done:
	case <-late.Done():
		t.Fatal("150 stalled requests are still open after 10s")
	}
	t.Logf("150 stalled requests ended within %s", time.Since(begin).Round(time.Millisecond))
	if n := g.calls.Load(); n != 0 {
		t.Errorf("the handler ran %d times without a body", n)
	}
	eventually(t, "other requests are answered", func() bool {
		code, _ := g.post(t, newClient(t, "127.0.0.1"), path, strings.NewReader("{}"))
		return code == http.StatusOK
	})
}

// endless is a body without an end, which counts what was sent of it.
type endless struct{ sent atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.sent.Add(int64(len(p)))
	return len(p), nil
}

// A body that never ends is refused at the limit of its size.
func TestEndlessBody(t *testing.T) {
	g := start(t, serving.Options{Limits: serving.Limits{Body: 1 << 20, Memory: 12 << 20, Read: 20 * time.Second}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := &endless{}
	late, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ended := make(chan string, 1)
	go func() {
		code, text := g.post(t, newClient(t, "127.0.0.1"), path, body)
		ended <- http.StatusText(code) + " " + text
	}()
	select {
	case got := <-ended:
		if !strings.Contains(got, "at most 1048576 bytes") {
			t.Errorf("answered %q", got)
		}
	case <-late.Done():
		t.Fatalf("an endless body is still read after 5s and %d MiB", body.sent.Load()>>20)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 32<<20 {
		t.Errorf("%d MiB allocated for a body of at most 1 MiB", grown>>20)
	}
	if g.calls.Load() != 0 || g.refused(t, "body") != 1 {
		t.Errorf("%d calls of the handler, %d refused", g.calls.Load(), g.refused(t, "body"))
	}
}

func TestBodies(t *testing.T) {
	g := start(t, serving.Options{Limits: quick()})
	cases := map[string]struct {
		why  string
		fill string
		size int
		code int
	}{
		"none":         {"a health check has no body", "a", 0, http.StatusOK},
		"at the limit": {"the limit is allowed", "a", 64 << 10, http.StatusOK},
		"above":        {"one byte more is not", "a", 64<<10 + 1, http.StatusRequestEntityTooLarge},
		"objects":      {"each takes 2 KiB when it is decoded", "{", 300, http.StatusRequestEntityTooLarge},
		"above, not declared": {
			why:  "the length that a client declares does not matter",
			fill: "a",
			size: -(64<<10 + 1),
			code: http.StatusRequestEntityTooLarge,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(strings.Repeat(c.fill, max(c.size, -c.size)))
			if c.size < 0 {
				body = struct{ io.Reader }{body}
			}
			if code, text := g.post(t, newClient(t, "127.0.0.1"), path, body); code != c.code {
				t.Errorf("%s: %d %s, want %d", c.why, code, text, c.code)
			}
		})
	}
}

// One client that uses up its half leaves the other half to others.
func TestShares(t *testing.T) {
	cases := map[string]struct {
		why    string
		limits func(*serving.Limits)
		size   int
		most   int
		reason string
	}{
		"memory": {
			why:    "3 bodies of 32 KiB count three times, and are what large ones of one client may have of 768 KiB",
			limits: func(*serving.Limits) {}, size: 32 << 10, most: 3, reason: "memory",
		},
		"requests": {
			why:    "half of 6 is 3",
			limits: func(l *serving.Limits) { l.Requests = 6 }, size: 1, most: 3, reason: "requests",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limits := quick()
			c.limits(&limits)
			body := strings.Repeat("a", c.size)
			// Each has a path of its own, and is counted alone.
			paths := []string{path, "/b", "/c", "/d"}
			g := start(t, serving.Options{Limits: limits}, paths[1:]...)
			g.hold = make(chan struct{})
			greedy := newClient(t, "127.0.0.1")
			var ended sync.WaitGroup
			for i := range c.most {
				ended.Add(1)
				go func() {
					defer ended.Done()

					if code, text := g.post(t, greedy, paths[i], strings.NewReader(body)); code != http.StatusOK {
						t.Errorf("%s: %d %s", c.why, code, text)
					}
				}()
			}
			eventually(t, "the handlers run", func() bool { return int(g.running.Load()) == c.most })
			code, text := g.post(t, greedy, paths[c.most], strings.NewReader(body))
			if code != http.StatusServiceUnavailable {
				t.Errorf("%s: one more is answered %d %s", c.why, code, text)
			}
			if n := g.refused(t, c.reason); n != 1 {
				t.Errorf("%d refused for %s", n, c.reason)
			}
			ended.Add(1)
			go func() {
				defer ended.Done()

				if code, text := g.post(t, newClient(t, "127.0.0.2"), path, strings.NewReader(body)); code != http.StatusOK {
					t.Errorf("another client is answered %d %s", code, text)
				}
			}()
			eventually(t, "the handler of another client runs", func() bool { return int(g.running.Load()) == c.most+1 })
			close(g.hold)
			ended.Wait()
			if code, text := g.post(t, greedy, path, strings.NewReader(body)); code != http.StatusOK {
				t.Errorf("afterwards: %d %s", code, text)
			}
		})
	}
}

// A controller creates the pods of one namespace in bursts, all from one API server, within the memory of
// config/manager. They wait for each other, and none is refused.
func TestBursts(t *testing.T) {
	known := func(context.Context, netip.Addr) bool { return true }
	variable := `{"name":"VARIABLE","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a']"}}},`
	cases := map[string]struct {
		why             string
		pods, variables int
	}{
		"three batches":     {"three workers send batches of 64 pods of 9 KB", 192, 100},
		"a batch of larges": {"64 pods of 45 KB", 64, 500},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limits := serving.Limits{Memory: 225 << 20}
			g := start(t, serving.Options{Limits: limits, Clients: serving.Clients{Known: known}})
			g.hold = make(chan struct{})
			body := `{"request":{"namespace":"shop","object":{"spec":{"containers":[{"env":[` +
				strings.Repeat(variable, c.variables) + `{}]}]}}}}`
			apiServer := newClient(t, "127.0.0.9")
			codes := make(chan int, c.pods)
			for range c.pods {
				go func() {
					code, _ := g.post(t, apiServer, path, strings.NewReader(body))
					codes <- code
				}()
			}
			eventually(t, "all have arrived", func() bool {
				return g.gauge(t, "kruisekit_webhook_requests", "running")+g.gauge(t,
					"kruisekit_webhook_requests", "waiting") >= c.pods
			})
			close(g.hold)
			for range c.pods {
				if code := <-codes; code != http.StatusOK {
					t.Fatalf("%s: a pod is answered %d", c.why, code)
				}
			}
		})
	}
}

// A review that is refused because others run can be repeated by the API server.
func TestRetryAfter(t *testing.T) {
	known := func(context.Context, netip.Addr) bool { return true }
	limits := serving.Limits{Requests: 4, Wait: time.Millisecond}
	g := start(t, serving.Options{Limits: limits, Clients: serving.Clients{Known: known}})
	g.hold = make(chan struct{})
	apiServer := newClient(t, "127.0.0.9")
	const body = `{"request":{"namespace":"shop","object":{}}}`
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.post(t, apiServer, path, strings.NewReader(body))
	}()
	eventually(t, "one runs", func() bool { return g.gauge(t, "kruisekit_webhook_requests", "running") == 1 })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.address+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := apiServer.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" {
		t.Errorf("answered %d with Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
	}
	close(g.hold)
	<-ended
}

// Reviews of one namespace with large objects take long, because of their dry runs. Those of small pods elsewhere are
// answered meanwhile.
func TestManyLargeReviews(t *testing.T) {
	known := func(context.Context, netip.Addr) bool { return true }
	limits := serving.Limits{Wait: 200 * time.Millisecond}
	g := start(t, serving.Options{Limits: limits, Clients: serving.Clients{Known: known}}, "/other")
	g.hold, g.free = make(chan struct{}), "/other"
	review := func(namespace string, objects int) string {
		containers := "[" + strings.Repeat("{},", objects) + "{}]"
		return `{"request":{"namespace":"` + namespace + `","object":{"spec":{"containers":` + containers + `}}}}`
	}
	apiServer := newClient(t, "127.0.0.9")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var late atomic.Int64
	for i := range 36 {
		body := review("hostile", []int{50000, 50000, 10000, 2000, 800, 200, 60, 12, 6, 6, 6, 6}[i%12])
		all.Add(1)
		go func() {
			defer all.Done()

			for ctx.Err() == nil {
				if code, _ := g.post(t, apiServer, path, strings.NewReader(body)); code == http.StatusTooManyRequests {
					late.Add(1)
				}
			}
		}()
	}
	eventually(t, "reviews of the namespace are refused", func() bool { return late.Load() > 20 })
	for i := range 40 {
		code, text := g.post(t, apiServer, "/other", strings.NewReader(review(fmt.Sprintf("tenant-%d", i%5), 100)))
		if code != http.StatusOK {
			t.Fatalf("a pod of another tenant is answered %d %s", code, text)
		}
	}
	memory := func(size string) int { return g.gauge(t, "kruisekit_webhook_memory_bytes", size) }
	small, large := memory("small"), memory("large")
	limit := g.gauge(t, "kruisekit_webhook_memory_limit_bytes")
	if small <= 0 || small+large > limit/2 || limit != 512<<20 {
		t.Errorf("%d and %d bytes are in use of %d", small, large, limit)
	}
	running := func() int { return g.gauge(t, "kruisekit_webhook_requests", "running") }
	eventually(t, "small reviews of the namespace run", func() bool { return running() >= 5 })
	if n := running(); n > 37 {
		t.Errorf("%d requests run", n)
	}
	if n := g.gauge(t, "kruisekit_connections", "webhook", "known"); n < 1 {
		t.Errorf("%d connections are open", n)
	}
	if g.refused(t, "namespace") == 0 {
		t.Error("no refusal is counted")
	}
	cancel()
	close(g.hold)
	all.Wait()
	eventually(t, "nothing is held", func() bool { return memory("small")+memory("large") == 0 })
}

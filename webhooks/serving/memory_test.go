package serving_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/webhooks/serving"
)

func TestBodies(t *testing.T) {
	limits := serving.Limits{Body: 64 << 10, Memory: 768 << 10}
	g := start(t, serving.Options{Limits: limits})
	cases := map[string]struct {
		why, body string
		// undeclared sends the body without its length.
		undeclared bool
		code       int
	}{
		"none":               {"the handler answers that", "", false, http.StatusOK},
		"at the limit":       {"the limit is allowed", strings.Repeat("a", 64<<10), false, http.StatusOK},
		"above":              {"a byte too many", strings.Repeat("a", 64<<10+1), false, http.StatusRequestEntityTooLarge},
		"above, undeclared":  {"what arrives counts", strings.Repeat("a", 64<<10+1), true, http.StatusRequestEntityTooLarge},
		"within, undeclared": {"a length is not required", strings.Repeat("a", 64<<10), true, http.StatusOK},
		"objects":            {"each takes 2 KiB", strings.Repeat("{", 300), false, http.StatusRequestEntityTooLarge},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for version, client := range map[string]*http.Client{"2": newClient(t, apiServer), "1": oldClient(t)} {
				var body io.Reader = strings.NewReader(c.body)
				if c.undeclared {
					body = struct{ io.Reader }{body}
				}
				if got := g.post(t, client, path, body, false); got.code != c.code {
					t.Errorf("%s: HTTP/%s: %+v, want %d", c.why, version, got, c.code)
				}
			}
		})
	}
	eventually(t, "no memory is held", func() bool { return g.value(t, "kruisekit_webhook_memory_bytes") == 0 })
	if n := g.refused(t, "body"); n != 6 {
		t.Errorf("%d refusals are counted, want 6", n)
	}
}

// oldClient uses HTTP/1.
func oldClient(t *testing.T) *http.Client {
	t.Helper()
	c := newClient(t, apiServer)
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	return c
}

// endless is a body without an end.
type endless struct{ sent atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.sent.Add(int64(len(p)))
	return len(p), nil
}

// A body that never ends is refused at the limit of its size.
func TestEndlessBody(t *testing.T) {
	g := start(t, serving.Options{Limits: serving.Limits{Body: 1 << 20, Memory: 12 << 20, Read: late}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := g.post(t, newClient(t, attacker), path, &endless{}, false); got.err == nil &&
		!strings.Contains(got.text, "at most 1048576 bytes") {
		t.Errorf("answered %+v", got)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 32<<20 {
		t.Errorf("%d MiB allocated for a body of at most 1 MiB", grown>>20)
	}
	if g.calls.Load() != 0 || g.refused(t, "body") != 1 {
		t.Errorf("%d calls of the handler, %d refused", g.calls.Load(), g.refused(t, "body"))
	}
}

// Requests beyond the memory wait for those that run, and are then answered.
func TestManyReviews(t *testing.T) {
	const most, reviews = 4 << 20, 20
	g := start(t, serving.Options{Limits: serving.Limits{Body: 64 << 10, Memory: most, Wait: late, Answer: late}})
	large := strings.Repeat("{},", 450) // 3 MiB of work are 3 of these
	client, answers := newClient(t, apiServer), make(chan answer, reviews)
	for range reviews {
		go func() { answers <- g.post(t, client, path, strings.NewReader(large), true) }()
	}
	held := func() int { return g.value(t, "kruisekit_webhook_memory_bytes") }
	eventually(t, "all have arrived", func() bool {
		if n := held(); n > most {
			t.Fatalf("%d bytes are held of %d", n, most)
		}
		// 3 that run, of 900 KiB and more, and 17 bodies in 8 KiB beside 32 KiB each.
		return g.running.Load() == 3 && held() >= 3*900<<10+17*40<<10
	})
	close(g.hold)
	for range reviews {
		if a := <-answers; a.code != http.StatusOK {
			t.Errorf("a review is answered %+v", a)
		}
	}
	eventually(t, "no memory is held", func() bool { return held() == 0 })
	if g.value(t, "kruisekit_webhook_memory_limit_bytes") != most || g.refused(t, "memory") != 0 {
		t.Errorf("the limit is %d, %d refused", g.value(t, "kruisekit_webhook_memory_limit_bytes"), g.refused(t, "memory"))
	}
}

// A review that waits in vain gets an answer after which an API server tries again. A client that gives up leaves
// nothing behind.
func TestReviewsThatWaitInVain(t *testing.T) {
	for name, wait := range map[string]time.Duration{"too long": time.Millisecond, "cancelled": late} {
		t.Run(name, func(t *testing.T) {
			g := start(t, serving.Options{Limits: serving.Limits{Body: 64 << 10, Memory: 4 << 20, Wait: wait}})
			large, client := strings.Repeat("{},", 1000), newClient(t, apiServer)
			ran := make(chan answer, 1)
			go func() { ran <- g.post(t, client, path, strings.NewReader(large), true) }()
			eventually(t, "one runs", func() bool { return g.running.Load() == 1 })
			held := g.value(t, "kruisekit_webhook_memory_bytes")
			if wait == late {
				ctx, cancel := context.WithCancel(t.Context())
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+g.address+path, strings.NewReader(large))
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					response, err := client.Do(request)
					if err == nil {
						_ = response.Body.Close()
					}
					ended <- err
				}()
				eventually(t, "another one waits", func() bool { return g.value(t, "kruisekit_webhook_memory_bytes") > held })
				cancel()
				if err := <-ended; err == nil {
					t.Error("the cancelled review is answered")
				}
			} else if got := g.post(t, client, path, strings.NewReader(large), false); got.code != http.StatusTooManyRequests ||
				got.retryAfter != "1" {
				t.Errorf("answered %+v", got)
			}
			eventually(t, "only the first one holds memory", func() bool {
				return g.value(t, "kruisekit_webhook_memory_bytes") == held && g.refused(t, "memory") == 1
			})
			close(g.hold)
			if a := <-ran; a.code != http.StatusOK {
				t.Errorf("the review that ran is answered %+v", a)
			}
		})
	}
}

// Bodies that arrive and stop hold at most their part of the memory, until their deadline. A review that runs is
// answered meanwhile.
func TestManyStalledBodies(t *testing.T) {
	limits := serving.Limits{Body: 64 << 10, Memory: 1 << 20, Read: time.Second, Answer: late}
	g := start(t, serving.Options{Limits: limits})
	ran := make(chan answer, 1)
	go func() { ran <- g.post(t, newClient(t, apiServer), path, strings.NewReader("{}"), true) }()
	eventually(t, "a review runs", func() bool { return g.running.Load() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 20 {
		go func() {
			// Half of a body arrives, and nothing else.
			body := io.MultiReader(strings.NewReader(strings.Repeat("a", 32<<10)), blocked(ctx.Done()))
			g.post(t, newClient(t, attacker), path, body, false)
		}()
	}
	eventually(t, "some are refused", func() bool { return g.refused(t, "memory") > 0 })
	if n := g.value(t, "kruisekit_webhook_memory_bytes"); n > 1<<20 {
		t.Errorf("%d bytes are held of 1 MiB", n)
	}
	close(g.hold)
	if a := <-ran; a.code != http.StatusOK {
		t.Errorf("the review is answered %+v", a)
	}
	eventually(t, "the deadline ends the bodies", func() bool {
		return g.refused(t, "time") > 0 && g.value(t, "kruisekit_webhook_memory_bytes") == 0
	})
	g.mustAnswer(t, apiServer)
}

// blocked is a body that does not go on.
type blocked <-chan struct{}

func (b blocked) Read([]byte) (int, error) {
	<-b
	return 0, io.EOF
}

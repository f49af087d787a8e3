package serving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// firstBuffer is the size of the first buffer of a body.
const firstBuffer = 8 << 10

// gate checks requests and reads their bodies before a handler runs.
type gate struct {
	options Options
	memory  *memory
	metrics requestMetrics
}

// refusal is why a request gets no answer of a handler. An API server puts the text into the answer to its own client.
type refusal struct {
	reason string
	code   int
	text   string
}

// guard puts the limits before a handler.
func (g *gate) guard(path string, hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &share{of: g.memory}
		defer s.release()
		why := g.authenticate(path, r)
		if why == nil && r.Body != nil && r.Body != http.NoBody {
			why = g.load(w, r, s)
		}
		if why != nil {
			g.refuse(w, r, why)
			return
		}
		hook.ServeHTTP(w, r)
	})
}

func (g *gate) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	g.metrics.refused.WithLabelValues(why.reason).Inc()
	log.FromContext(r.Context()).V(1).Info("Refused request",
		"path", r.URL.Path, "client", r.RemoteAddr, "reason", why.text)
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // the server does not read the rest of the body
	}
	if why.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1") // an API server repeats the review within its time
	}
	http.Error(w, why.text, why.code)
}

// authenticate returns a refusal of a client without the required certificate.
func (g *gate) authenticate(path string, r *http.Request) *refusal {
	if g.options.ClientCA == nil || slices.Contains(g.options.OpenPaths, path) {
		return nil
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		name := r.TLS.VerifiedChains[0][0].Subject.CommonName
		if len(g.options.ClientNames) == 0 || slices.Contains(g.options.ClientNames, name) {
			return nil
		}
	}
	return &refusal{noCertificate, http.StatusUnauthorized, "the client must show a certificate of an API server"}
}

// load reads the body into memory, and waits for memory to decode it.
func (g *gate) load(w http.ResponseWriter, r *http.Request, s *share) *refusal {
	limit := g.options.Limits.Body
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	if !s.grow(perRequest) {
		return busy()
	}
	body, why := s.read(r.Body, limit)
	if why != nil {
		return why
	}
	// In HTTP/1 a read deadline that passes cancels the request, and an answer may take longer than a body.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	need := decoded(body)
	if need > g.memory.largest {
		const text = "the review takes %d bytes of memory, and must take at most %d: the object has too many elements"
		return &refusal{largeBody, http.StatusRequestEntityTooLarge, fmt.Sprintf(text, need, g.memory.largest)}
	}
	ctx, cancel := context.WithTimeout(r.Context(), g.options.Limits.Wait)
	defer cancel()
	if s.run(ctx, need) != nil {
		return busy()
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// read reads a body into a buffer that grows with what arrives.
func (s *share) read(from io.Reader, limit int64) ([]byte, *refusal) {
	var body []byte
	for {
		if have := int64(cap(body)); int64(len(body)) == have {
			grown := min(max(firstBuffer, 2*have), limit+1) // one byte more shows a body above the limit
			if !s.grow(grown - have) {
				return nil, busy()
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, tooLarge(limit)
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, &refusal{lateBody, http.StatusRequestTimeout, "read the body: " + err.Error()}
		}
	}
}

func tooLarge(limit int64) *refusal {
	text := fmt.Sprintf("the body must have at most %d bytes", limit)
	return &refusal{largeBody, http.StatusRequestEntityTooLarge, text}
}

func busy() *refusal {
	return &refusal{busyMemory, http.StatusTooManyRequests, "too much memory in requests at the same time: try again"}
}

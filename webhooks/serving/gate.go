package serving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// gate is what a request passes before its handler.
type gate struct {
	limits   Limits
	clients  Clients
	verdicts *verdicts
	shares   *shares
	meter    meter
	counts   counts
}

func newGate(o Options) (*gate, error) {
	m, err := newMeter(o.Registerer)
	if err != nil {
		return nil, err
	}
	c, err := newCounts(o.Registerer, "webhook")
	if err != nil {
		return nil, err
	}
	return &gate{
		limits: o.Limits, clients: o.Clients, verdicts: newVerdicts(o.Clients), shares: newShares(o.Limits, m),
		meter: m, counts: c,
	}, nil
}

// refusal is why a request has no answer.
type refusal struct {
	reason reason
	code   int
	text   string
}

// Error is what the client reads, which an API server puts into the answer to its own client.
func (r *refusal) Error() string { return r.text }

// guard puts the limits before a handler.
func (g *gate) guard(path string, hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := g.enter(path, r)
		defer release()
		if refused := (*refusal)(nil); errors.As(err, &refused) {
			g.meter.refused(refused.reason)
			log.FromContext(r.Context()).V(1).Info("Refused request",
				"path", path, "client", r.RemoteAddr, "reason", refused.text)
			w.Header().Set("Connection", "close") // of what is left of the body nothing is read
			if refused.code == http.StatusTooManyRequests || refused.code == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", "1") // an API server repeats the review within its time
			}
			http.Error(w, refused.text, refused.code)
			return
		}
		// In HTTP/1 a read deadline that passes cancels the request, and an answer may take longer than a body.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		hook.ServeHTTP(w, r)
	})
}

// enter checks the client, and reads the body into memory. What is held is held until release.
func (g *gate) enter(path string, r *http.Request) (release func(), err error) {
	client := addressOf(r.RemoteAddr)
	share, ok := g.shares.request(client, g.waits(path, client, r))
	if !ok {
		return func() {}, &refusal{busyRequests, http.StatusServiceUnavailable, "too many requests at the same time"}
	}
	if err := g.check(path, client, r); err != nil {
		return share.end, err
	}
	share.checked()
	if r.Body == nil || r.Body == http.NoBody {
		return share.end, nil
	}
	body, err := share.read(r, path, g.limits.Body)
	if err != nil {
		return share.end, err
	}
	if err := share.run(r.Context(), decoded(body)); err != nil {
		return share.end, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if g.known(r) {
		g.verdicts.prove(client)
	}
	if !slices.Contains(g.clients.Public, path) && g.valid(client, r) {
		spoke(r.Context())
	}
	return share.end, nil
}

// valid reports whether a request that passed the check counts for its connection. A prompt one, and one while clients
// cannot be looked up, passes although nothing is known of its client.
func (g *gate) valid(client netip.Addr, r *http.Request) bool {
	if g.verdicts.standing(r.Context(), client) == known {
		return true
	}
	if g.clients.Check == nil {
		return g.clients.CA == nil
	}
	last, _ := g.verdicts.last(client)
	return last.answered()
}

// waits reports whether a client waits for a check.
func (g *gate) waits(path string, client netip.Addr, r *http.Request) bool {
	return !slices.Contains(g.clients.Public, path) && !g.known(r) && g.verdicts.waits(r.Context(), client)
}

// limit bounds the connections of a listener.
func (g *gate) limit(ctx context.Context, listener net.Listener) net.Listener {
	counts := g.counts
	counts.more = func() { g.meter.refused(busyConnections) }
	standing := func(a netip.Addr) standing { return g.verdicts.standing(ctx, a) }
	return newLimited(listener, g.limits.Connections, standing, counts)
}

// check returns why a client is refused.
func (g *gate) check(path string, client netip.Addr, r *http.Request) error {
	if slices.Contains(g.clients.Public, path) {
		return nil
	}
	if g.clients.CA != nil && !slices.Contains(g.clients.Bare, path) && !g.known(r) {
		return &refusal{noCertificate, http.StatusUnauthorized, "the client must show a certificate of an API server"}
	}
	prompt := slices.ContainsFunc(g.clients.Prompt, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	why, err := g.verdicts.of(r.Context(), client, prompt)
	if err != nil {
		log.FromContext(r.Context()).Error(err, "Answered a client without a check", "client", client.String())
		return nil // while clients cannot be looked up, the API server is still answered
	}
	if why != "" {
		return &refusal{foreignClient, http.StatusForbidden, why}
	}
	return nil
}

// known reports whether the client has shown a certificate that is wanted.
func (g *gate) known(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	names := g.clients.Names
	return len(names) == 0 || slices.Contains(names, r.TLS.VerifiedChains[0][0].Subject.CommonName)
}

// first is what is made for a body before anything arrived.
const first = 8 << 10

// What decoding takes at most. A body of empty containers, of three bytes each, becomes a list of structs of a
// kilobyte, which is copied once more; a body of objects of one field, of seven bytes each, becomes maps of 350 bytes,
// which are copied up to four times. An empty object in a field, which metadata of managed fields has many of, is a
// small map.
const (
	perByte   = 3
	perObject = 2 << 10
	perEmpty  = 256
	perValue  = 64
)

// decoded estimates what the objects and lists of a body take.
func decoded(body []byte) int64 {
	count := func(sign string) int64 { return int64(bytes.Count(body, []byte(sign))) }
	empty := count(`":{}`)
	return perObject*(count("{")-empty) + perEmpty*empty + perValue*(count("[")+count(","))
}

// read reads a body, whose memory grows with what arrives. Its beginning has the namespace, by which the rest is
// counted.
func (s *share) read(r *http.Request, path string, most int64) ([]byte, error) {
	large := &refusal{
		largeBody, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body must have at most %d bytes", most),
	}
	if r.ContentLength > most {
		return nil, large
	}
	end := most
	if r.ContentLength >= 0 {
		end = r.ContentLength
	}
	var body []byte
	for {
		room := body[len(body):cap(body)]
		switch have := int64(len(body)); {
		case have == end:
			room = make([]byte, 1) // to see that there is no more
		case len(room) == 0:
			if have > 0 && s.queue == nil {
				s.join(tenantOf(s.client, path, body))
			}
			grown := min(max(first, 2*have), end)
			if err := s.reserve(perByte * (grown - have)); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, grown), body...)
			continue
		}
		n, err := r.Body.Read(room)
		if n > 0 && int64(len(body)) == end {
			return nil, large
		}
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			if s.queue == nil {
				s.join(tenantOf(s.client, path, body))
			}
			return body, nil
		case err != nil:
			return nil, &refusal{lateBody, http.StatusRequestTimeout, "read the body: " + err.Error()}
		}
	}
}

// tenantOf returns by what a review is counted.
func tenantOf(client netip.Addr, path string, beginning []byte) tenant {
	if namespace := namespaceOf(beginning); namespace != "" {
		return tenant{client: client, namespace: namespace}
	}
	return tenant{client: client, path: path}
}

// addressOf returns the address of a client without its port; it is not valid if there is none.
func addressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

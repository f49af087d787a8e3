package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// secrets are random, and live as long as the process.
type secrets struct {
	// path is that of the page. Browsers send cookies to all ports of a host: one that is bound to a path that no other
	// server knows stays with this server.
	path string
	// token of the printed URL is exchanged for the cookie.
	token string
	// session is the value of the cookie, and write the token that requests with an effect carry next to it.
	session, write string
}

// text returns a random text of 256 bits.
func text() string {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // which never fails
	return base64.RawURLEncoding.EncodeToString(bits)
}

func newSecrets() secrets {
	return secrets{path: "/" + text()[:16] + "/", token: text(), session: text(), write: text()}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

const (
	cookieName = "kruise-dashboard"
	// tokenHeader carries the token of requests with an effect.
	tokenHeader = "X-Kruise-Token"
	maxBody     = 1 << 20
	maxHeader   = 16 << 10
	// maxConnections and maxStreams are far above what the tabs of one user need.
	maxConnections = 64
	maxStreams     = 16
)

// policy lets the page load its own files alone, and no page frame it. Scripts may not write HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard answers what must not reach the page, and sets the headers of all answers.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		_ = http.NewResponseController(w).SetWriteDeadline(s.clock.Now().Add(2 * time.Minute))
		if !s.isHost(r.Host) { // a name that an attacker has resolved to this machine
			http.Error(w, "this server answers on 127.0.0.1 alone", http.StatusMisdirectedRequest)
			return
		}
		if s.exchange(w, r) {
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			http.Error(w, "requests of other pages are refused", http.StatusForbidden)
			return
		}
		cookie, err := r.Cookie(cookieName)
		if err != nil || !same(cookie.Value, s.secrets.session) {
			http.Error(w, "open the URL that kubectl kruise dashboard has printed", http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet && !s.mayPost(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isHost reports whether a request names this server.
func (s *server) isHost(host string) bool {
	return host == s.host || host == strings.Replace(s.host, "127.0.0.1", "localhost", 1)
}

// exchange answers a request with a token: with the cookie, and a page that leads to the one without the token. A
// redirect would not do: where another page links to the URL, browsers hold the cookie back for all of its redirects.
func (s *server) exchange(w http.ResponseWriter, r *http.Request) (answered bool) {
	token := r.URL.Query().Get("token")
	if r.Method != http.MethodGet || r.URL.Path != s.secrets.path || token == "" {
		return false
	}
	if !same(token, s.secrets.token) {
		http.Error(w, "the token is wrong: the dashboard may have been started again", http.StatusUnauthorized)
		return true
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // the server has no TLS: it answers this machine alone
		Name: cookieName, Value: s.secrets.session, Path: s.secrets.path, HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprint(w, `<!doctype html><html lang="en"><title>kubectl kruise</title>`+
		`<link rel="icon" href="icon.svg"><meta http-equiv="refresh" content="0;url=./"></html>`)
	return true
}

// mayPost refuses requests with an effect that do not come from the page itself.
func (s *server) mayPost(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case r.Header.Get("Origin") != "http://"+r.Host:
		http.Error(w, "requests of other pages are refused", http.StatusForbidden)
	case !same(r.Header.Get(tokenHeader), s.secrets.write):
		http.Error(w, "the token of the page is missing", http.StatusForbidden)
	case r.Header.Get("Content-Type") != "application/json":
		http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
	default:
		_ = http.NewResponseController(w).SetReadDeadline(s.clock.Now().Add(30 * time.Second))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		return true
	}
	return false
}

// limited is a listener that closes connections beyond a number at once.
type limited struct {
	net.Listener

	free chan struct{}
}

func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, n)}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &counted{Conn: conn, done: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			_ = conn.Close()
		}
	}
}

// counted is a connection that counts against the limit until it is closed.
type counted struct {
	net.Conn

	done func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.done()
	return c.Conn.Close()
}

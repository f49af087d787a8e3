package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// page are the files of the page, as they are served.
//
//go:embed page
var page embed.FS

// about is what the page says about itself.
type about struct {
	Namespace string `json:"namespace"`
	Context   string `json:"context"`
	Cluster   string `json:"cluster"`
	Write     bool   `json:"write"`
	// Token is for requests with an effect.
	Token string `json:"token"`
}

// server serves the page to one user.
type server struct {
	secrets secrets
	// host is address and port.
	host    string
	about   about
	cluster *cluster
	sources *sources
	// command returns how commands reach the API server, on behalf of a request.
	command func(context.Context) target.Command
	clock   clock.Clock
	// interval is the least time between two messages to a reader.
	interval time.Duration
	streams  chan struct{}
	// busy is held by the plan that is computed: one at a time.
	busy sync.Mutex
}

// serve answers requests until the context is done.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	var feeds sync.WaitGroup
	s.sources = &sources{
		linger: 10 * time.Second, running: map[string]*source{},
		start: func(run func(context.Context)) func() {
			inner, cancel := context.WithCancel(ctx)
			spawn(&feeds, func() { run(inner) })
			return cancel
		},
	}
	s.streams = make(chan struct{}, maxStreams)
	handler, err := s.handler()
	if err != nil {
		return err
	}
	web := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer ended()
	err = web.Serve(limit(l, maxConnections))
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	feeds.Wait()
	return err
}

func (s *server) handler() (http.Handler, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", typed(http.FileServerFS(files)))
	mux.HandleFunc("GET /api/about", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.about) })
	mux.HandleFunc("GET /api/events", s.stream)
	mux.HandleFunc("GET /api/pod", s.pod)
	mux.HandleFunc("GET /api/revisions", s.revisions)
	mux.HandleFunc("POST /api/plan", s.plan)
	mux.HandleFunc("POST /api/act", s.act)
	return s.guard(http.StripPrefix(s.secrets.path[:len(s.secrets.path)-1], mux)), nil
}

// typed sets the type of a file, which the settings of some systems get wrong.
func typed(next http.Handler) http.Handler {
	types := map[string]string{".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind := types[path.Ext(r.URL.Path)]; kind != "" {
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
		}
		next.ServeHTTP(w, r)
	})
}

// decodeBody reads the body of a request, whose deadline ends with it: what follows may take longer.
func decodeBody(w http.ResponseWriter, r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	return http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// answer writes an answer as JSON.
func answer(w http.ResponseWriter, value any) { reply(w, http.StatusOK, value) }

// refuse writes why a request has no answer.
func refuse(w http.ResponseWriter, code int, err error) {
	reply(w, code, map[string]string{"error": err.Error()})
}

func reply(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

package readers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// server answers reviews as an API server does, and counts them.
type server struct {
	asked atomic.Int64
	down  atomic.Bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	if s.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if r.URL.Path == "/apis/authentication.k8s.io/v1/tokenreviews" {
		review := authenticationv1.TokenReview{}
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Authenticated = review.Spec.Token != "forged"
		review.Status.User.Username = review.Spec.Token
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	review := authorizationv1.SubjectAccessReview{}
	_ = json.NewDecoder(r.Body).Decode(&review)
	review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.NonResourceAttributes.Path == "/metrics"
	_ = json.NewEncoder(w).Encode(review)
}

func TestFilter(t *testing.T) {
	api := &server{}
	listening := httptest.NewServer(api)
	defer listening.Close()
	rc := &rest.Config{Host: listening.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	filter, err := Filter("/livez")(rc, listening.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	get := func(path, header string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("Authorization", header)
		handler.ServeHTTP(w, r)
		return w.Code
	}
	cases := map[string]struct {
		why, path, header string
		code              int
		asked             int64
	}{
		"a reader":            {"its account may get the path", "/metrics", "Bearer prometheus", http.StatusOK, 2},
		"another account":     {"it may not", "/metrics", "Bearer tenant", http.StatusForbidden, 2},
		"no token":            {"nothing is asked", "/metrics", "", http.StatusUnauthorized, 0},
		"another scheme":      {"nothing is asked", "/metrics", "Basic prometheus", http.StatusUnauthorized, 0},
		"a forged token":      {"it is of no user", "/metrics", "Bearer forged", http.StatusUnauthorized, 1},
		"another path":        {"the right is about one path", "/debug", "Bearer prometheus", http.StatusForbidden, 2},
		"a probe":             {"kubelets have no token", "/livez", "", http.StatusOK, 0},
		"a path in a path":    {"only the whole path is open", "/livez/metrics", "", http.StatusUnauthorized, 0},
		"a path like a probe": {"only the whole path is open", "/livez/../metrics", "", http.StatusUnauthorized, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, asked := range []int64{c.asked, 0} { // the second time from memory
				before := api.asked.Load()
				if code := get(c.path, c.header); code != c.code {
					t.Errorf("%s: %d, want %d", c.why, code, c.code)
				}
				if n := api.asked.Load() - before; n != asked {
					t.Errorf("%s: %d reviews, want %d", c.why, n, asked)
				}
			}
		})
	}
	api.down.Store(true)
	if code := get("/metrics", "Bearer other"); code != http.StatusInternalServerError {
		t.Errorf("while the API server is down: %d", code)
	}
	api.down.Store(false)
	before := api.asked.Load()
	for i := range 100 {
		get("/metrics", fmt.Sprintf("Bearer %d", i))
	}
	if n := api.asked.Load() - before; n > 40 {
		t.Errorf("%d reviews for 100 tokens at once", n)
	}
}

// Readers without a right, however many, keep no reader with the right from the metrics: neither when their tokens fill
// the memory, nor when its answer has to be asked for again.
func TestManyReaders(t *testing.T) {
	api := &server{}
	listening := httptest.NewServer(api)
	defer listening.Close()
	rc := &rest.Config{Host: listening.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	tokens, access := authenticationclient.NewForConfigOrDie(rc), authorizationclient.NewForConfigOrDie(rc)
	r := &readers{
		tokens: tokens.TokenReviews(),
		access: access.SubjectAccessReviews(),
		asking: rate.NewLimiter(0, most+1),
		known:  map[key]verdict{},
	}
	ask := func(token string) int {
		t.Helper()
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		q.Header.Set("Authorization", "Bearer "+token)
		code, err := r.judge(q)
		if err != nil {
			t.Error(err)
		}
		return code
	}
	if code := ask("prometheus"); code != http.StatusOK {
		t.Fatalf("%d for a reader", code)
	}
	for i := range most + 10 {
		ask(fmt.Sprintf("tenant-%d", i))
	}
	for _, why := range []string{"from memory", "asked for again"} {
		if code := ask("prometheus"); code != http.StatusOK {
			t.Errorf("%d for a reader among others, %s", code, why)
		}
		for k, v := range r.known {
			v.until = time.Time{}
			r.known[k] = v
		}
	}
	if n := len(r.known); n > most {
		t.Errorf("%d readers in memory", n)
	}
}

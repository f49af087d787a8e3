// Package readers asks the API server who may read the metrics of a process, as kubelets and the components of
// Kubernetes do: a TokenReview finds the user of a bearer token, and a SubjectAccessReview whether this user may get
// the path.
//
// It does what controller-runtime's filters.WithAuthenticationAndAuthorization does, without the packages of an API
// server, which would be the larger part of a daemon.
package readers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// fresh is how long an answer is used, and most how many are remembered.
	fresh = time.Minute
	most  = 64
	// reviews per second, and how many at once, of readers that are not known.
	reviews, burst = 5, 20
	// patience of both reviews.
	patience = 10 * time.Second
)

// Filter is for FilterProvider of a metrics server. Everybody may get the open paths, such as those of probes.
func Filter(open ...string) func(rc *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	return func(rc *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
		tokens, err := authenticationclient.NewForConfigAndClient(rc, httpClient)
		if err != nil {
			return nil, fmt.Errorf("make a client of token reviews: %w", err)
		}
		access, err := authorizationclient.NewForConfigAndClient(rc, httpClient)
		if err != nil {
			return nil, fmt.Errorf("make a client of access reviews: %w", err)
		}
		all := &readers{
			tokens: tokens.TokenReviews(),
			access: access.SubjectAccessReviews(),
			open:   open,
			asking: rate.NewLimiter(reviews, burst),
			known:  map[key]verdict{},
		}
		return all.filter, nil
	}
}

type readers struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	open   []string
	// asking bounds the reviews that readers without a right can cause.
	asking *rate.Limiter

	mu    sync.Mutex
	known map[key]verdict
}

// key is a token, which is not kept, and a path.
type key struct {
	token [sha256.Size]byte
	path  string
}

type verdict struct {
	code  int
	until time.Time
}

func (r *readers) filter(log logr.Logger, handler http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !slices.Contains(r.open, q.URL.Path) {
			code, err := r.judge(q)
			if err != nil {
				log.Error(err, "Refused a reader of metrics")
			}
			if code != http.StatusOK {
				http.Error(w, http.StatusText(code), code)
				return
			}
		}
		handler.ServeHTTP(w, q)
	}), nil
}

// judge returns the status of a request.
func (r *readers) judge(q *http.Request) (int, error) {
	token, found := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" {
		return http.StatusUnauthorized, nil
	}
	now := time.Now()
	k := key{sha256.Sum256([]byte(token)), q.URL.Path}
	r.mu.Lock()
	last, known := r.known[k]
	r.mu.Unlock()
	if known && now.Before(last.until) {
		return last.code, nil
	}
	// A reader that had the right is asked about without delay, however many others there are.
	if last.code != http.StatusOK && !r.asking.Allow() {
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(q.Context(), patience)
	defer cancel()
	code, err := r.ask(ctx, token, q.URL.Path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	r.keep(k, verdict{code, now.Add(fresh)})
	return code, nil
}

// keep remembers an answer. Where there are too many, readers without a right are forgotten first.
func (r *readers) keep(k key, now verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= most {
		maps.DeleteFunc(r.known, func(_ key, old verdict) bool { return old.code != http.StatusOK })
	}
	if len(r.known) >= most {
		clear(r.known)
	}
	r.known[k] = now
}

// ask asks the API server about a token and a path.
func (r *readers) ask(ctx context.Context, token, path string) (int, error) {
	reviewed, err := r.tokens.Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review token: %w", err)
	}
	if !reviewed.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := reviewed.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	allowed, err := r.access.Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review access: %w", err)
	}
	if !allowed.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

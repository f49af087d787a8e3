package process

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/examples/reference/readiness"
)

// The paths of probes, which need no token.
const (
	readyPath = "/healthz"
	livePath  = "/livez"
)

// endpoints are next to the metrics. /healthz is 200 while the daemon can work: for a readiness probe. /livez is 200
// while the process serves: a restart cures nothing that /healthz reports.
func endpoints(checks map[string]healthz.Checker) map[string]http.Handler {
	return map[string]http.Handler{
		readyPath: healthy(checks),
		livePath:  healthy(nil),
	}
}

// logged are checks whose reasons are logged when they change.
func logged(ctx context.Context, checks map[string]healthz.Checker) map[string]healthz.Checker {
	all := map[string]healthz.Checker{}
	for name, check := range checks {
		all[name] = readiness.Logged(name, check, log.FromContext(ctx), clock.RealClock{})
	}
	return all
}

// healthy answers as the reference does, with the first check in the order of names that fails.
func healthy(checks map[string]healthz.Checker) http.Handler {
	names := slices.Sorted(maps.Keys(checks))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range names {
			if err := checks[name](r); err != nil {
				http.Error(w, fmt.Sprintf("check %s failed, err: %v", name, err), http.StatusInternalServerError)
				return
			}
		}
		fmt.Fprint(w, "ok")
	})
}

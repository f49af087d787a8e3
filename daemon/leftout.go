package daemon

import (
	"context"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/metrics"
)

// LeftOut has the parts that AddToManager leaves out while their kinds are not installed. Its zero value is ready for
// one manager.
type LeftOut struct{ parts binding.Awaited }

// Names returns the parts that are left out, sorted.
func (l *LeftOut) Names() []string { return l.waiting().Names() }

func (l *LeftOut) waiting() *binding.Awaited {
	if l == nil {
		return nil
	}
	return &l.parts
}

// part is a part that waits for its kind.
func (t target) part(mgr ctrl.Manager, p part, kind schema.GroupVersionKind, left metrics.LeftOut) binding.Part {
	return binding.Part{Name: p.name, Kinds: []schema.GroupVersionKind{kind}, Add: func(ctx context.Context) error {
		if err := t.add(ctx, mgr, p); err != nil {
			return err
		}
		left.Set(p.name, false)
		log.FromContext(ctx).Info("Added part that was left out", "part", p.name)
		return nil
	}}
}

// check is the check of a part that may be left out: its own when it is added.
func (l *LeftOut) check(name string, added healthz.Checker) healthz.Checker {
	return func(r *http.Request) error {
		if slices.Contains(l.Names(), name) {
			return l.parts.Check()
		}
		return added(r)
	}
}

// newGauge returns the gauge of the parts that are left out.
func newGauge(registerer prometheus.Registerer) (metrics.LeftOut, error) {
	return metrics.NewLeftOut(registerer, prometheus.GaugeOpts{
		Name: "kruise_daemon_parts_left_out",
		Help: "1 for a part of the daemon that does not run because its kind is not installed.",
	}, "part")
}

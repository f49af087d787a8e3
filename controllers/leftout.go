package controllers

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/metrics"
)

// LeftOut reports the reconcilers that AddToManager leaves out while their kinds are not installed. Its zero value is
// ready for one manager.
type LeftOut struct{ parts binding.Awaited }

// Names returns the reconcilers that are left out, sorted.
func (l *LeftOut) Names() []string { return l.waiting().Names() }

// Check is a check for readiness. It fails in the first 15 seconds after the start while reconcilers are left out: a
// fresh install may create their kinds at this moment. Later it succeeds, because an administrator may leave kinds out
// for good. The looks begin when the caches are synced: where readiness must come before, as on the cold start of
// conversion webhooks, wrap the check in certificates.Keeper.ColdStart.
func (l *LeftOut) Check(*http.Request) error { return l.waiting().Check() }

func (l *LeftOut) waiting() *binding.Awaited {
	if l == nil {
		return nil
	}
	return &l.parts
}

// part is an entry that waits for its kinds.
func (e entry) part(mgr ctrl.Manager, o *Options, left metrics.LeftOut) binding.Part {
	return binding.Part{
		Name: e.name, Optional: optional(e.name, o),
		Kinds: append([]schema.GroupVersionKind{e.kind}, required(e.name)...),
		Add: func(ctx context.Context) error {
			if err := e.add(ctx, mgr, o); err != nil {
				return err
			}
			left.Set(e.name, false)
			log.FromContext(ctx).Info("Added controller that was left out", "controller", e.name)
			return nil
		},
	}
}

// required are the kinds that a reconciler watches besides its own, and cannot do without.
func required(name string) []schema.GroupVersionKind {
	return map[string][]schema.GroupVersionKind{
		"imagelistpulljob": {v1beta1.GroupVersion.WithKind("ImagePullJob")},
		"imagepulljob":     {v1beta1.GroupVersion.WithKind("NodeImage")},
		"nodepodprobe":     {v1alpha1.GroupVersion.WithKind("PodProbeMarker")},
		"podprobemarker":   {v1alpha1.GroupVersion.WithKind("NodePodProbe")},
	}[name]
}

// optional are the kinds that a reconciler watches where they are installed when it is added.
func optional(name string, o *Options) []schema.GroupVersionKind {
	kinds := func(names ...string) []schema.GroupVersionKind {
		all := make([]schema.GroupVersionKind, 0, len(names))
		for _, kind := range names {
			all = append(all, v1beta1.GroupVersion.WithKind(kind))
		}
		return all
	}
	switch {
	case name == "advancedcronjob":
		return kinds("BroadcastJob", "ImageListPullJob")
	case name == "nodeimage",
		name == "cloneset" && o.CloneSet.PreDownload,
		name == "daemonset" && o.DaemonSet.PreDownload,
		name == "statefulset" && o.StatefulSet.PreDownload:
		return kinds("ImagePullJob")
	case name == "uniteddeployment":
		return kinds("CloneSet", "StatefulSet")
	}
	return nil
}

// newGauge returns the gauge of the reconcilers that are left out.
func newGauge(registerer prometheus.Registerer) (metrics.LeftOut, error) {
	return metrics.NewLeftOut(registerer, prometheus.GaugeOpts{
		Name: "kruisekit_controllers_left_out",
		Help: "1 for a controller that does not run because a kind that it needs is not installed.",
	}, "controller")
}

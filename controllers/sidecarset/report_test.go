package sidecarset

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/sidecarsets"
)

// emitted returns the events since the last call.
func emitted(r *record.FakeRecorder) []string {
	var all []string
	for len(r.Events) > 0 {
		all = append(all, <-r.Events)
	}
	return all
}

// gauges returns the values of all metrics by the set.
func gauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "kruisekit_sidecarset_pods_lacking_containers" {
			t.Errorf("metric %s", f.GetName())
		}
		for _, m := range f.GetMetric() {
			all[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return all
}

// TestReports tests what a pass reports of a set beside its pods: once for a spec, and without a retry that only
// another spec could help.
func TestReports(t *testing.T) {
	cases := map[string]struct {
		why    string
		change func(*warehouse)
		events []string
		// invalid expects the event of the rules that the webhook applies.
		invalid bool
		lacking float64
		// fails expects that the reconciler gives up until the spec changes.
		fails bool
	}{
		"a valid set": {why: "there is nothing to report", change: func(*warehouse) {}},
		"a spec that the webhook rejects, and a pass accepts": {
			why: "pods are counted and updated as far as the spec can be read", invalid: true,
			change: func(w *warehouse) { w.set.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(-1)) },
		},
		"a spec that no pass can use": {
			why: "the same rules report it", invalid: true, fails: true,
			change: func(w *warehouse) { w.set.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromString("many")) },
		},
		"a strategy that only a pass reads": {
			why: "an unknown type has no rules, and the pass reports what it cannot read", fails: true,
			change: func(w *warehouse) {
				w.set.Spec.UpdateStrategy.Type, w.set.Spec.UpdateStrategy.MaxUnavailable = "Odd", ptr.To(intstr.FromString("x%"))
			},
			events: []string{
				`Warning InvalidSpec spec.updateStrategy.maxUnavailable: "x%" is no percentage: it is not a decimal number`,
			},
		},
		"pods without a container": {
			why: "one event for all of them", lacking: 2,
			change: func(w *warehouse) {
				for i := range 2 {
					w.pods[i].Spec.Containers = slices.DeleteFunc(w.pods[i].Spec.Containers, func(c corev1.Container) bool {
						return c.Name == "proxy"
					})
				}
			},
			events: []string{
				"Warning ContainersMissing 2 pods that this set selects lack containers of it; only new pods get them",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := stock(t, 3)
			w.set.Status.ObservedGeneration = w.set.Generation // as after a takeover
			c.change(w)
			recorder, registry := record.NewFakeRecorder(100), prometheus.NewRegistry()
			r, err := New(w, Options{
				Recorder: recorder, Registerer: registry, Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
			})
			if err != nil {
				t.Fatal(err)
			}
			want := c.events
			if c.invalid {
				want = []string{"Warning InvalidSpec " + sidecarsets.Validate(w.set).ToAggregate().Error()}
			}
			request := ctrl.Request{NamespacedName: types.NamespacedName{Name: w.set.Name}}
			for pass := range 3 {
				result, err := r.Reconcile(t.Context(), request)
				if (err != nil) != c.fails || c.fails && !errors.Is(err, reconcile.TerminalError(nil)) || result.RequeueAfter != 0 {
					t.Errorf("%s: pass %d: again after %s: %v", c.why, pass, result.RequeueAfter, err)
				}
				if diff := cmp.Diff(want, emitted(recorder)); diff != "" {
					t.Errorf("%s: pass %d (-want +got):\n%s", c.why, pass, diff)
				}
				want = nil
			}
			if diff := cmp.Diff(map[string]float64{w.set.Name: c.lacking}, gauges(t, registry)); diff != "" {
				t.Errorf("%s: metric (-want +got):\n%s", c.why, diff)
			}
			if r.forget(w.set.Name); len(gauges(t, registry)) != 0 {
				t.Errorf("a deleted set has metrics: %v", gauges(t, registry))
			}
		})
	}
}

// TestMissingAgain tests that the event comes again after all pods had the containers.
func TestMissingAgain(t *testing.T) {
	w := stock(t, 2)
	recorder := record.NewFakeRecorder(100)
	r, err := New(w, Options{Recorder: recorder, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	whole := slices.Clone(w.pods)
	for i, step := range []struct {
		lacking int
		want    int
	}{{1, 1}, {2, 0}, {1, 0}, {0, 0}, {1, 1}} {
		w.pods = slices.Clone(whole)
		for k := range step.lacking {
			w.pods[k] = *w.pods[k].DeepCopy()
			w.pods[k].Spec.Containers = w.pods[k].Spec.Containers[:0]
		}
		if _, err := r.Reconcile(t.Context(),
			ctrl.Request{NamespacedName: types.NamespacedName{Name: w.set.Name}}); err != nil {
			t.Fatal(err)
		}
		if got := emitted(recorder); len(got) != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

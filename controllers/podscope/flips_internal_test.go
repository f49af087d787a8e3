package podscope

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/internal/apiserver"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// flipping is a reconciler whose objects change.
type flipping struct {
	*testing.T

	r        *Reconciler
	registry *prometheus.Registry
	now      time.Time
	objects  []unstructured.Unstructured
	// writes of configurations.
	writes int
}

func newFlipping(t *testing.T, disruptions bool) *flipping {
	t.Helper()
	f := &flipping{T: t, registry: prometheus.NewRegistry(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(known, func() time.Time { return f.now })
	for _, o := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration}},
	} {
		if err := server.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	c := interceptor.NewClient(server, interceptor.Funcs{
		Patch: func(
			ctx context.Context, below client.WithWatch, o client.Object, p client.Patch, all ...client.PatchOption,
		) error {
			f.writes++
			return below.Patch(ctx, o, p, all...)
		},
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			into.(*unstructured.UnstructuredList).Items = f.objects
			return nil
		},
	})
	with := New
	if disruptions {
		with = NewDisruptions
	}
	var err error
	f.r, err = with(c, Options{
		URL:        "https://127.0.0.1:1",
		CABundle:   []byte("ca"),
		Registerer: f.registry,
		Recorder:   record.NewFakeRecorder(1000),
		Now:        func() time.Time { return f.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.r.objects = c
	for _, name := range f.r.names() {
		f.r.configurations[name] = c
	}
	return f
}

func (f *flipping) reconcile() {
	f.Helper()
	if _, err := f.r.Reconcile(f.Context(), ctrl.Request{}); err != nil {
		f.Fatal(err)
	}
}

// metric returns the value of one of the webhook.
func (f *flipping) metric(name string) float64 {
	f.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "kruisekit_pod_scope_"+name && m.GetLabel()[0].GetValue() == f.r.form.webhook {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	f.Fatalf("there is no metric %s", name)
	return 0
}

// A tenant creates and deletes objects 20 times a second for 20 seconds, under new names or the same ones. The
// configuration is written a few times, and metrics report the namespace, the size and the writes.
func TestFlips(t *testing.T) {
	spread, budget := scope.SpreadKind(), scope.BudgetKind()
	for name, c := range map[string]struct {
		why         string
		disruptions bool
		names, most int
		widened     int
	}{
		"spreads of new names":     {"names are changes until all pods are sent", false, 1 << 20, 22, 1},
		"spreads of the same name": {"it is no change", false, 1, 1, 0},
		"budgets of new names":     {"the other configuration alike", true, 1 << 20, 22, 1},
		"budgets of two names":     {"they are no change after the first", true, 2, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, kind := newFlipping(t, c.disruptions), spread
			if c.disruptions {
				kind = budget
			}
			f.r.followed[kind] = true
			f.reconcile()
			began := f.writes
			for i := range 400 {
				f.objects = nil
				if i%2 == 0 || c.names > 1 {
					one := unstructured.Unstructured{Object: map[string]any{
						"metadata": map[string]any{"namespace": "hostile", "name": fmt.Sprint("n-", i%c.names)},
						"spec": map[string]any{
							"targetRef": map[string]any{
								"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": fmt.Sprint("n-", i%c.names),
							},
						},
					}}
					one.SetGroupVersionKind(kind)
					f.objects = append(f.objects, one)
				}
				f.reconcile()
				f.now = f.now.Add(50 * time.Millisecond)
			}
			if n := f.writes - began; n < 1 || n > c.most {
				t.Errorf("%s: %d writes, at most %d", c.why, n, c.most)
			}
			if n, writes := f.metric("widened_namespaces"), f.metric("writes_total"); int(n) != c.widened ||
				int(writes) != f.writes {
				t.Errorf("%s: metrics have %v namespaces, %v of %d writes", c.why, n, writes, f.writes)
			}
			entries, bytes, clauses, compile := f.metric("entries"), f.metric("bytes"), f.metric("clauses"),
				f.metric("compile_seconds")
			if entries != 2 || bytes < 100 || bytes > 1<<14 || clauses < entries || compile <= 0 || compile > 0.1 {
				t.Errorf("metrics have %v entries, %v bytes, %v clauses, %v seconds", entries, bytes, clauses, compile)
			}
		})
	}
}

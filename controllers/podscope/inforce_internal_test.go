package podscope

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// The entries are in force a moment after they were written, at once where a restart finds them, and that is reported
// once.
func TestInForce(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	api := apiserver.New(clientgoscheme.Scheme, func() time.Time { return now })
	named := func(name string) *admissionregistrationv1.MutatingWebhookConfiguration {
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	main := named(DefaultMainConfiguration)
	reach := scope.Reach{Namespace: DefaultNamespace, Service: DefaultService, CABundle: []byte("ca")}
	main.Webhooks = []admissionregistrationv1.MutatingWebhook{{Name: "m.kb.io", ClientConfig: reach.Client()}}
	for _, o := range []client.Object{named(DefaultConfiguration), named(ProvisionalConfiguration)} {
		if err := api.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	start := func() *Reconciler {
		r, err := New(api, Options{
			ReadinessGateForAll: true, InForce: func() { calls++ }, Now: func() time.Time { return now },
			Recorder: record.NewFakeRecorder(9),
		})
		if err != nil {
			t.Fatal(err)
		}
		r.objects, r.sources = api, []scope.Source{scope.Readiness(true)}
		for _, name := range r.names() {
			r.configurations[name] = api
		}
		return r
	}
	r := start()
	reconcile := func(step string, want int, wait bool) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if calls != want || wait && (result.RequeueAfter <= 0 || result.RequeueAfter > noticed) {
			t.Errorf("%s: %d calls, want %d; again after %s", step, calls, want, result.RequeueAfter)
		}
	}
	reconcile("no CA", 0, false)
	if err := api.Put(main); err != nil {
		t.Fatal(err)
	}
	reconcile("the write", 0, false)
	reconcile("just written", 0, true)
	now = now.Add(noticed)
	reconcile("noticed", 1, false)
	reconcile("once", 1, false)
	r = start()
	reconcile("a restart", 2, false)
}

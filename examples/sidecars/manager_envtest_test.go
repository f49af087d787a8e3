//go:build envtest

package sidecars_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	admission "github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// unserved is a webhook server without an address: questions go to its mux.
type unserved struct{ webhook.Server }

func (unserved) Start(ctx context.Context) error { <-ctx.Done(); return nil }

// What the example adds, and what its comment says must be there, is enough: pods are sent and injected, sets
// completed, and their history kept.
func TestManager(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_sidecarsets.yaml"},
	})
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: "log:1"}}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, mainConfiguration(),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
			Name: podscope.DefaultConfiguration,
		}},
		set,
	} {
		if err := c.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	mux := run(t, c, scheme)

	cluster.Eventually(t, func(ctx context.Context) error {
		var have admissionregistrationv1.MutatingWebhookConfiguration
		if err := c.Client.Get(ctx, client.ObjectKey{Name: podscope.DefaultConfiguration}, &have); err != nil {
			return err
		}
		if len(have.Webhooks) != 1 || string(have.Webhooks[0].ClientConfig.CABundle) != "ca" ||
			have.Webhooks[0].ClientConfig.Service.Namespace != namespace {
			return fmt.Errorf("entries %+v", have.Webhooks)
		}
		return nil
	})
	cluster.Eventually(t, func(ctx context.Context) error {
		var revisions appsv1.ControllerRevisionList
		if err := c.Client.List(ctx, &revisions, client.InNamespace(namespace)); err != nil || len(revisions.Items) != 1 {
			return fmt.Errorf("%d revisions, %w", len(revisions.Items), err)
		}
		return c.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
	})
	shop := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "shop", Labels: map[string]string{"app": "shop"},
	}}
	shop.Spec.Containers = []corev1.Container{{Name: "main", Image: "shop:1"}}
	asked := map[string]struct {
		object client.Object
		kind   schema.GroupVersionKind
		plural string
		want   string
	}{
		pod.Path:             {shop, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", "log:1"},
		admission.MutatePath: {set, v1beta1.GroupVersion.WithKind("SidecarSet"), "sidecarsets", "kruise.io/sidecarset-hash"},
	}
	for path, q := range asked {
		cluster.Eventually(t, func(context.Context) error {
			answer := ask(t, mux, path, &admissionv1.AdmissionRequest{
				UID: "u", Name: q.object.GetName(), Namespace: q.object.GetNamespace(), Operation: admissionv1.Create,
				Kind:     metav1.GroupVersionKind{Group: q.kind.Group, Version: q.kind.Version, Kind: q.kind.Kind},
				Resource: metav1.GroupVersionResource{Group: q.kind.Group, Version: q.kind.Version, Resource: q.plural},
				Object:   encoded(t, q.object, q.kind),
			})
			if answer == nil || !answer.Allowed ||
				!strings.Contains(strings.ReplaceAll(string(answer.Patch), "~1", "/"), q.want) {
				return fmt.Errorf("%s answers %+v", path, answer)
			}
			return nil
		})
	}
	t.Run("getting out", func(t *testing.T) { testGettingOut(t, c) })
}

// mainConfiguration is what the CA is taken from. It concerns nothing, for there is no service here.
func mainConfiguration() *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: podscope.DefaultMainConfiguration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "msidecarset.kb.io",
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: []byte("ca"), Service: &admissionregistrationv1.ServiceReference{
					Namespace: namespace, Name: podscope.DefaultService, Path: ptr.To(admission.MutatePath),
				},
			},
		}},
	}
}

// run has a manager with what the example adds, until the test ends.
func run(t *testing.T, c *cluster.Cluster, scheme *runtime.Scheme) http.Handler {
	t.Helper()
	hooks := unserved{webhook.NewServer(webhook.Options{})}
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, WebhookServer: hooks,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := errors.Join(addWebhooks(mgr), addReconcilers(ctx, mgr)); err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return hooks.WebhookMux()
}

func encoded(t *testing.T, object client.Object, kind schema.GroupVersionKind) runtime.RawExtension {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(kind)
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}

// ask is what an API server does, but for the way.
func ask(t *testing.T, mux http.Handler, path string, q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: q,
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return review.Response
}

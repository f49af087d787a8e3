package webhooks_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/webhooks"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
)

func TestConversionsAreTheCRDsOfTwoVersions(t *testing.T) {
	all, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range all {
		if len(c.Spec.Versions) > 1 {
			want = append(want, c.Name)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, webhooks.Conversions()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Deletions of every protected kind are judged where API servers send them, whichever webhook has the path, and allowed
// where the policy protects nothing.
func TestDeletionsAreJudged(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		mux := serve(t, webhooks.Options{
			NoPods:   true,
			Deletion: deletion.Options{Policy: protection.Policy{Disabled: disabled}},
		})
		for _, k := range protection.Kinds() {
			for _, version := range k.Versions {
				body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"DELETE",
					"kind":{"group":"` + k.Group + `","version":"` + version + `","kind":"` + k.Kind + `"},
					"oldObject":{"metadata":{"name":"x","labels":{"policy.kruise.io/delete-protection":"Always"}}}}}`
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, deletion.Path(k), strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				mux.ServeHTTP(answer, r)
				text := answer.Body.String()
				if strings.Contains(text, `"allowed":true`) != disabled || !disabled &&
					!strings.Contains(text, "forbidden by ResourcesProtectionDeletion") {
					t.Errorf("%s/%s %s, disabled %t: %d %s", k.Group, version, k.Kind, disabled, answer.Code, text)
				}
			}
		}
	}
}

// serve adds all webhooks to a manager that is never started.
func serve(t *testing.T, o webhooks.Options) http.Handler {
	t.Helper()
	scheme, mux := runtime.NewScheme(), http.NewServeMux()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme),
		appsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: &webhook.DefaultServer{Options: webhook.Options{WebhookMux: mux}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := webhooks.AddToManager(mgr, o); err != nil {
		t.Fatal(err)
	}
	return mux
}

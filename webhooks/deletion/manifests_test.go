package deletion_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	config "github.com/kruisekit/kruisekit/config/protection"
	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
)

// Each kind of the table has a webhook for its deletion alone, at the path where the guard answers, which fails closed.
func TestManifests(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "webhook", "manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, validating, _ := strings.Cut(string(data), "kind: ValidatingWebhookConfiguration")
	var all admissionv1.ValidatingWebhookConfiguration
	if err := yaml.Unmarshal([]byte(validating[:strings.LastIndex(validating, "\n")]), &all); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]admissionv1.ValidatingWebhook{}, map[string]admissionv1.ValidatingWebhook{}
	for _, w := range all.Webhooks {
		if slices.Contains(w.Rules[0].Operations, admissionv1.Delete) {
			w.ClientConfig.Service = &admissionv1.ServiceReference{Path: w.ClientConfig.Service.Path}
			got[w.Name] = w
		}
	}
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	for _, k := range protection.Kinds() {
		path := deletion.Path(k)
		want[config.WebhookName(k)] = admissionv1.ValidatingWebhook{
			Name:                    config.WebhookName(k),
			FailurePolicy:           &fail,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1", "v1beta1"},
			ClientConfig:            admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Path: &path}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Delete},
				Rule: admissionv1.Rule{
					APIGroups: []string{k.Group}, APIVersions: k.Versions, Resources: []string{k.Resource},
				},
			}},
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks for deletions (-want +got):\n%s", diff)
	}
}

// The paths are those of the reference.
func TestPath(t *testing.T) {
	var got []string
	for _, k := range protection.Kinds() {
		got = append(got, deletion.Path(k))
	}
	want := []string{
		"/validate-namespace", "/validate-service", "/validate-customresourcedefinition", "/validate-apps-deployment",
		"/validate-apps-replicaset",
		"/validate-apps-statefulset", "/validate-apps-kruise-io-cloneset", "/validate-apps-kruise-io-statefulset",
		"/validate-apps-kruise-io-uniteddeployment", "/validate-ingress",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

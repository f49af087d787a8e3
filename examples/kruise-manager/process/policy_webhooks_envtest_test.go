//go:build envtest

package process

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// webhooks are writes of webhook configurations.
func (g *policyGround) webhooks(t *testing.T) map[string]attempt {
	t.Helper()
	entry := func(name, namespace, resource string) admissionv1.MutatingWebhook {
		return admissionv1.MutatingWebhook{
			Name: name, AdmissionReviewVersions: []string{"v1"},
			SideEffects:    ptr.To(admissionv1.SideEffectClassNone),
			FailurePolicy:  ptr.To(admissionv1.Ignore),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"never": "selected"}},
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: namespace, Name: "kruise-webhook-service", Path: ptr.To("/mutate-pod"),
			}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}},
		}
	}
	configuration := func(name string, entries ...admissionv1.MutatingWebhook) *admissionv1.MutatingWebhookConfiguration {
		return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: entries}
	}
	const (
		main  = "kruise-mutating-webhook-configuration"
		other = "kruise-validating-webhook-configuration"
		pods  = "kruise-pods-webhook-configuration"
		fresh = "kruise-pods-provisional-webhook-configuration"
	)
	g.create(t, configuration(main, entry("a.kb.io", "kruise-system", "widgets")))
	g.create(t, configuration(pods, entry("theirs.kb.io", "shop", "widgets")))
	set := func(path, value string) string {
		return `[{"op":"add","path":"/webhooks/` + path + `","value":` + value + `}]`
	}
	const url, ca = `{"url":"https://10.9.9.9/"}`, "/clientConfig/caBundle"
	add := func(name, namespace, resource string) string {
		e, err := json.Marshal(entry(name, namespace, resource))
		if err != nil {
			t.Fatal(err)
		}
		return set("-", string(e))
	}
	const alone, onlyCA, toPods = "of its installation alone", "the CA alone", "must send pods alone"
	return map[string]attempt{
		"the CA: certificates rotate": {g.patches(configuration(main), jsonPatch, set("0"+ca, authority(t))), ""},
		"the CA of others' entries: they name the Service": {
			g.patches(configuration(pods), jsonPatch, set("0"+ca, authority(t))), "",
		},
		"an entry of pods: a SidecarSet selects them": {
			g.patches(configuration(pods), jsonPatch, add("mpod.kb.io", "kruise-system", "pods")), "",
		},
		"a new configuration: an administrator has deleted it": {
			g.creates(configuration(fresh, entry("mpod.kb.io", "kruise-system", "pods"))), "",
		},
		"a client: every object would be sent there": {
			g.patches(configuration(main), jsonPatch, set("0/clientConfig", url)), onlyCA,
		},
		"a rule: every Secret would be sent": {
			g.patches(configuration(main), jsonPatch, set("0/rules/0/resources/-", `"secrets"`)), onlyCA,
		},
		"a selector: objects would not be validated": {
			g.patches(configuration(main), jsonPatch, set("0/objectSelector", `{"matchLabels":{"a":"b"}}`)), onlyCA,
		},
		"an entry: every Secret would be sent": {
			g.patches(configuration(main), jsonPatch, add("b.kb.io", "kruise-system", "pods")), onlyCA,
		},
		"an entry goes: objects would not be validated": {
			g.patches(configuration(main), jsonPatch, `[{"op":"remove","path":"/webhooks/0"}]`), onlyCA,
		},
		"an entry of Secrets: every Secret would be sent": {
			g.patches(configuration(pods), jsonPatch, add("b.kb.io", "kruise-system", "secrets")), toPods,
		},
		"an entry to others: every pod would be sent there": {
			g.patches(configuration(pods), jsonPatch, add("b.kb.io", "shop", "pods")), toPods,
		},
		"a client of pods: every pod would be sent there": {
			g.patches(configuration(pods), jsonPatch, set("0/clientConfig", url)), toPods,
		},
		"another configuration: it could send anything": {g.creates(configuration("a")), alone},
		"a main configuration: config ships it": {
			g.creates(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: other}}), alone,
		},
	}
}

// definitions are writes of CRDs.
func (g *policyGround) definitions(t *testing.T) map[string]attempt {
	t.Helper()
	sets, jobs := definition("sidecarsets.apps.kruise.io"), definition("broadcastjobs.apps.kruise.io")
	convert := func(client string) string {
		return `[{"op":"add","path":"/spec/conversion","value":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],` +
			`"clientConfig":` + client + `}}}]`
	}
	const service = `{"service":{"namespace":"kruise-system","name":"kruise-webhook-service","path":"/convert"}}`
	const none = `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`
	const unserved = `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`
	const anything = `[{"op":"replace","path":"/spec/versions/0/schema","value":{"openAPIV3Schema":{"type":"object"}}}]`
	ca := `[{"op":"add","path":"/spec/conversion/webhook/clientConfig/caBundle","value":` + authority(t) + `}]`
	converted := runtimeclient.RawPatch(jsonPatch, []byte(convert(service)))
	if err := g.Client.Patch(t.Context(), jobs.DeepCopy(), converted); err != nil {
		t.Fatal(err)
	}
	const onlyCA = "the CA of the conversion alone"
	return map[string]attempt{
		"the CA: certificates rotate": {g.patches(jobs, jsonPatch, ca), ""},
		"an annotation: nothing is converted by it": {
			g.patches(sets, merge, `{"metadata":{"annotations":{"a":"b"}}}`), "",
		},
		"a schema: objects would be pruned":    {g.patches(sets, jsonPatch, anything), onlyCA},
		"a version: objects could not be read": {g.patches(sets, jsonPatch, unserved), onlyCA},
		"a conversion elsewhere: every object would be sent there": {
			g.patches(jobs, jsonPatch, convert(`{"url":"https://10.9.9.9/"}`)), onlyCA,
		},
		"a conversion: config has it, or not":          {g.patches(sets, jsonPatch, convert(service)), onlyCA},
		"a conversion goes: objects could not be read": {g.patches(jobs, jsonPatch, none), onlyCA},
		"a definition of others: RBAC names those of the installation": {
			func(ctx context.Context) error {
				err := g.patches(definition("nodepodprobes.apps.kruise.io"), merge, `{"metadata":{"annotations":{"a":"b"}}}`)(ctx)
				if !apierrors.IsForbidden(err) {
					return fmt.Errorf("patch a definition that is never converted: %w", err)
				}
				return nil
			}, "",
		},
	}
}

// authority is a CA bundle, as JSON.
func authority(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	bundle, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	return string(bundle)
}

func definition(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	o.SetName(name)
	return o
}

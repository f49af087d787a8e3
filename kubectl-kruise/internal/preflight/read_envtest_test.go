//go:build envtest

package preflight_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// record is a Secret as Helm writes it.
func record(t *testing.T, namespace, revision, text string) *corev1.Secret {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "sh.helm.release.v1." + namespace + ".v" + revision,
			Labels: map[string]string{"owner": "helm", "version": revision},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}

func helm(name, status, chart, version string) string {
	return fmt.Sprintf(`{"name":%q,"info":{"status":%q},"chart":{"metadata":{"name":%q,"version":%q}}}`,
		name, status, chart, version)
}

// world is a cluster with the reference in it.
func world(t *testing.T) []client.Object {
	t.Helper()
	labels := map[string]string{"control-plane": "controller-manager"}
	anyServer := httptest.NewTLSServer(nil)
	t.Cleanup(anyServer.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: anyServer.Certificate().Raw})
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
		"metadata": map[string]any{"namespace": "kube-system", "name": "proxy"},
	}}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "kruise-system", Labels: map[string]string{"control-plane": "openkruise"},
		}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-daemon-config"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-controller-manager", Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{
						Name: "manager", Image: "openkruise/kruise-manager:v1.8.3", Command: []string{"/manager"},
						Args: []string{"--feature-gates=ImagePullJobGate=true"},
					}}},
				},
			},
		},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "aggregate-kruise-view"}},
		record(t, "default", "1", helm("kruise", "superseded", "kruise", "1.7.3")),
		record(t, "default", "2", helm("kruise", "deployed", "kruise", "1.8.3")),
		record(t, "other", "9", helm("other", "deployed", "nginx", "1.0.0")),
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-manager"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("manager-a"), RenewTime: &metav1.MicroTime{Time: time.Now()},
			},
		},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{
				Name: "kruise-validating-webhook-configuration", Annotations: map[string]string{"template": "[]"},
			},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "vcloneset.kb.io", SideEffects: ptr.To(admissionv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{
					CABundle: authority, Service: &admissionv1.ServiceReference{Namespace: "x", Name: "x", Path: ptr.To("/validate")},
				},
			}},
		},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "of-others"}},
		&apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{
				Name:        "clonesets.apps.kruise.io",
				Annotations: map[string]string{"controller-gen.kubebuilder.io/version": "v0.14.0"},
			},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "apps.kruise.io", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{
					Kind: "CloneSet", ListKind: "CloneSetList", Plural: "clonesets",
				},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1alpha1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
					},
				}},
			},
		},
		set,
	}
}

// start returns a control plane with the world in it.
func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme})
	for _, o := range world(t) {
		err := c.Client.Create(t.Context(), o)
		for late := time.Now().Add(time.Minute); meta.IsNoMatchError(err) || apierrors.IsNotFound(err); {
			if time.Now().After(late) {
				break
			}
			err = c.Client.Create(t.Context(), o) // the kind is not served yet
		}
		if err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
	return c
}

func TestReading(t *testing.T) {
	c := start(t)
	t.Run("as an administrator", func(t *testing.T) { testRead(t, c) })
	t.Run("without rights", func(t *testing.T) { testReadWithoutRights(t, c) })
}

// check returns the report of the command.
func check(t *testing.T, c *cluster.Cluster, args ...string) string {
	t.Helper()
	got := apitest.RunConfig(t, command.New, c.Kubeconfig, append([]string{"migrate", "--check"}, args...)...)
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	return got.Out
}

func testRead(t *testing.T, c *cluster.Cluster) {
	report := check(t, c)
	for _, want := range []string{
		"OpenKruise 1.8.3 by Helm", "release kruise in namespace default, deployed, chart kruise-1.8.3\n",
		"evidence: image openkruise/kruise-manager:v1.8.3", "evidence: ClusterRole aggregate-kruise-view",
		"leader manager-a, seen ", "featureGates: ImagePullJobGate=true\n", "  CloneSet                       1\n",
		"the annotation template of kruise-validating-webhook-configuration has no effect", "CloneSet kube-system/proxy",
		"no Secret kruise-webhook-certs", "-n default delete secrets -l owner=helm,name=kruise",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	for _, surplus := range []string{"Not read", "has no CA", "cannot be read", "without a CA"} {
		if strings.Contains(report, surplus) {
			t.Errorf("the report has %q:\n%s", surplus, report)
		}
	}
	report = check(t, c, "--manager-namespace=other")
	if !strings.Contains(report, "whose manager does not run, namespace other\n") {
		t.Errorf("the report is not of the namespace:\n%s", report)
	}
}

// What a user may not read is in the report, and the rest is, too.
func testReadWithoutRights(t *testing.T, c *cluster.Cluster) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"apps", "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"},
		Resources: []string{"*"}, Verbs: []string{"get", "list"},
	}, {APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "reader"}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "reader"},
	}
	if err := errors.Join(c.Client.Create(t.Context(), role), c.Client.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	report := ""
	for late := time.Now().Add(time.Minute); time.Now().Before(late) && !strings.Contains(report, "OpenKruise 1.8.3"); {
		report = check(t, c, "--as=reader") // once the role has an effect
	}
	for _, want := range []string{
		`records of Helm: secrets is forbidden: User "reader" cannot list`, "clonesets.apps.kruise.io cannot be read",
		"OpenKruise 1.8.3 by manifests of the chart",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

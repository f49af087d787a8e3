//go:build envtest

package resourcedistribution_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/test/requests"
)

// TestDistribution runs the reconciler with the rights of the manager, as config/rbac and config/resourcedistribution
// grant them.
func TestDistribution(t *testing.T) {
	b := newBench(t)
	b.namespace("shop", nil)
	b.rights(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"namespaces", testNamespaces},
		{"drift", testDrift},
		{"the end", testEnd},
		{"policies", testPolicies},
		{"policy of the kind", testAdmissionPolicy},
	} {
		if !t.Run(c.name, func(t *testing.T) { c.test(t, b) }) {
			return
		}
	}
}

func secretOf(name, user string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"stringData":{"user":%q}}`, name, user)
}

const inShop = `"includedNamespaces":{"list":[{"name":"shop"}]}`

// rights: without them the status reports why nothing is copied, and the copies follow as soon as they are granted.
func (b *bench) rights(t *testing.T) {
	t.Helper()
	b.reconcile()
	b.distribute("rights", secretOf("rights", "reader"), inShop)
	d := b.settled("rights", 0, 1)
	if c := condition(d, v1beta1.ResourceDistributionGetResourceFailed); c.Status != "True" ||
		!strings.Contains(c.Reason, "is forbidden") || !slices.Equal(c.FailedNamespaces, []string{"shop"}) {
		t.Errorf("the condition is %+v", c)
	}
	b.apply("../../config/resourcedistribution")
	b.has("shop", "rights", "reader")
	b.settled("rights", 1, 1)
}

func testNamespaces(t *testing.T, b *bench) {
	web := map[string]string{"team": "web"}
	b.distribute("team", secretOf("team", "reader"),
		`"namespaceSelector":{"matchLabels":{"team":"web"}},"includedNamespaces":{"list":[{"name":"later"},{"name":"kube-system"}]}`)
	d := b.settled("team", 0, 1)
	if c := condition(d, v1beta1.ResourceDistributionNamespaceNotExists); c.Status != "True" ||
		!slices.Equal(c.FailedNamespaces, []string{"later"}) {
		t.Errorf("the condition is %+v", c)
	}
	begun := time.Now()
	b.namespace("later", nil)
	b.namespace("cart", web)
	b.has("cart", "team", "reader")
	b.has("later", "team", "reader")
	t.Logf("new namespaces have their copies after %v", time.Since(begun).Round(time.Millisecond))
	d = b.settled("team", 2, 2)
	for _, c := range d.Status.Conditions {
		if c.Status != "False" || c.Reason != "Succeeded" {
			t.Errorf("the condition is %+v", c)
		}
	}
	b.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, `{"metadata":{"labels":{"team":null}}}`)
	b.Until(func() error {
		if err := b.Look(secretIn("cart", "team")); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the copy is there: %w", err)
		}
		return nil
	})
	b.settled("team", 1, 1)
	b.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, `{"metadata":{"labels":{"team":"web"}}}`)
	b.has("cart", "team", "reader")
	if err := b.Client.Delete(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "later"}}); err != nil {
		t.Fatal(err)
	}
	d = b.settled("team", 1, 2) // it terminates
	if c := condition(d,
		v1beta1.ResourceDistributionNamespaceNotExists); !slices.Equal(c.FailedNamespaces, []string{"later"}) ||
		c.Reason != "namespace is terminating" {
		t.Errorf("the condition is %+v", c)
	}
}

// A copy is restored, and keeps what others add to its metadata.
func testDrift(t *testing.T, b *bench) {
	labelled := func(user, label string) string {
		return strings.Replace(secretOf("drift", user), `"name"`, fmt.Sprintf(`"labels":{%q:"x"},"name"`, label), 1)
	}
	b.distribute("drift", secretOf("drift", "reader"), inShop)
	s := b.has("shop", "drift", "reader")
	b.settled("drift", 1, 1)
	b.patch(s, `{"data":{"user":"eA==","other":"eA=="}}`)
	s = b.has("shop", "drift", "reader")
	b.patch(s, `{"data":null}`) // an API server ignores a directive for a map that is absent
	s = b.has("shop", "drift", "reader")
	b.patch(s, `{"metadata":{"labels":{"theirs":"1"},"finalizers":["example.com/theirs"]}}`)
	b.distribute("drift", labelled("one", "former"), inShop)
	b.has("shop", "drift", "one")
	b.settled("drift", 1, 1)
	b.distribute("drift", labelled("reader", "present"), inShop)
	s = b.has("shop", "drift", "reader")
	if s.Labels["theirs"] != "1" || s.Labels["present"] != "x" || s.Labels["former"] != "" ||
		!slices.Contains(s.Finalizers, "example.com/theirs") || len(s.OwnerReferences) != 1 {
		t.Errorf("the copy is %+v", s.ObjectMeta)
	}
	b.patch(s, `{"metadata":{"finalizers":null}}`)
	if err := b.Client.Delete(b.Context(), s); err != nil {
		t.Fatal(err)
	}
	b.has("shop", "drift", "reader")
}

// A distribution that is gone restores nothing, and the watch of its name ends with it.
func testEnd(t *testing.T, b *bench) {
	d := b.distribute("end", secretOf("end", "reader"), inShop)
	s := b.has("shop", "end", "reader")
	b.settled("end", 1, 1)
	if err := b.Client.Delete(b.Context(), d); err != nil {
		t.Fatal(err)
	}
	b.Still()
	b.Asked()
	b.patch(s, `{"data":{"user":"eA=="}}`)
	if err := b.Client.Delete(b.Context(), s); err != nil {
		t.Fatal(err)
	}
	b.Still()
	if asked := requests.About(b.Asked(), "secrets/end"); len(asked) > 0 {
		t.Errorf("requests %q", asked)
	}
}

// The account of the manager writes what a distribution controls alone.
func testPolicies(t *testing.T, b *bench) {
	manager, err := client.New(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	foreign := secretIn("shop", "foreign")
	b.create(foreign)
	owned := func(o client.Object) client.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1beta1", Kind: "ResourceDistribution", Name: "x", UID: "x", Controller: ptr.To(true),
		}})
		return o
	}
	token := secretIn("shop", "token")
	token.Type, token.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{
		corev1.ServiceAccountNameKey: "default",
	}
	mapIn := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "any"}}
	}
	release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null}}`))
	for what, c := range map[string]struct {
		do      func() error
		refused bool
	}{
		"a Secret without an owner": {
			func() error { return manager.Create(t.Context(), secretIn("shop", "new"), client.DryRunAll) }, true,
		},
		"a copy": {
			func() error { return manager.Create(t.Context(), owned(secretIn("shop", "new")), client.DryRunAll) }, false,
		},
		"a copy in kube-system": {func() error {
			return manager.Create(t.Context(), owned(secretIn("kube-system", "new")), client.DryRunAll)
		}, true},
		"a copy beside the manager": {func() error {
			return manager.Create(t.Context(), owned(secretIn("kruise-system", "new")), client.DryRunAll)
		}, true},
		"a token":               {func() error { return manager.Create(t.Context(), owned(token), client.DryRunAll) }, true},
		"a foreign Secret goes": {func() error { return manager.Delete(t.Context(), foreign, client.DryRunAll) }, true},
		"a foreign Secret changes": {func() error {
			return manager.Patch(t.Context(), foreign,
				client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"eA=="}}`)), client.DryRunAll)
		}, true},
		"a copy is released": {
			func() error { return manager.Patch(t.Context(), secretIn("shop", "drift"), release, client.DryRunAll) }, true,
		},
		"a copy goes": {
			func() error { return manager.Delete(t.Context(), secretIn("shop", "drift"), client.DryRunAll) }, false,
		},
		"a certificate": {func() error {
			return manager.Create(t.Context(), secretIn("kruise-system", "certificate"), client.DryRunAll)
		}, false},
		"a ConfigMap": {
			func() error { return manager.Create(t.Context(), mapIn("shop"), client.DryRunAll) }, true,
		},
		"a copied ConfigMap": {
			func() error { return manager.Create(t.Context(), owned(mapIn("shop")), client.DryRunAll) }, false,
		},
		"one beside the manager": {
			func() error { return manager.Create(t.Context(), owned(mapIn("kruise-system")), client.DryRunAll) }, true,
		},
		"one in kube-system": {
			func() error { return manager.Create(t.Context(), owned(mapIn("kube-system")), client.DryRunAll) }, true,
		},
	} {
		if err := c.do(); apierrors.IsForbidden(err) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// testAdmissionPolicy: the policy in the place of the webhook rejects what package distribution finds in the same
// specs, and no change for a fault that is stored.
func testAdmissionPolicy(t *testing.T, b *bench) {
	const secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"}}`
	stored := &distributor{
		ObjectMeta: metav1.ObjectMeta{Name: "stored"}, Spec: spec(t, secret, `"includedNamespaces":{"list":[{"name":"B"}]}`),
	}
	own := &distributor{
		ObjectMeta: metav1.ObjectMeta{Name: "own"},
		Spec:       spec(t, secret, `"includedNamespaces":{"list":[{"name":"kruise-system"}]}`),
	}
	b.create(stored)
	b.create(own)
	if out, err := b.cluster.Kubectl(t.Context(), "apply", "-f",
		"../../config/webhook/resourcedistribution-policy.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	try := func(resource, targets string) (*distributor, error) {
		d := &distributor{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: spec(t, resource, targets)}
		return d, b.Client.Create(b.Context(), d.DeepCopy(), client.DryRunAll)
	}
	b.Until(func() error {
		if _, err := try(secret, `"includedNamespaces":{"list":[{"name":"B"}]}`); err == nil {
			return fmt.Errorf("the policy does not decide yet")
		}
		return nil
	})
	for _, c := range [][2]string{
		{secret, ``},
		{
			secret,
			`"allNamespaces":true,"excludedNamespaces":{"list":[{"name":"a"}]},"includedNamespaces":{"list":[{"name":"kube-system"}]}`,
		},
		{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a.b-c","namespace":"x"}}`, ``},
		{secret, `"includedNamespaces":{"list":[]}`},
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`, ``},
		{`{"apiVersion":"v2","kind":"Secret","metadata":{"name":"a"}}`, ``},
		{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"A"}}`, ``},
		{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a..b"}}`, ``},
		{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"type":"kubernetes.io/service-account-token"}`, ``},
		{secret, `"includedNamespaces":{"list":[{}]}`},
		{secret, `"includedNamespaces":{"list":[{"name":"a"},{"name":"kruise-system"}]}`},
		{secret, `"excludedNamespaces":{"list":[{"name":"a.b"}]}`},
		{secret, `"includedNamespaces":{"list":[{"name":"a"},{"name":"b"}]},"excludedNamespaces":{"list":[{"name":"b"}]}`},
	} {
		d, err := try(c[0], c[1])
		faults := distribution.Validate(d, "kruise-system")
		if (err != nil) != (len(faults) > 0) ||
			err != nil && !strings.Contains(err.Error(), "kruisekit-resourcedistribution") {
			t.Errorf("%s: the webhook finds %v, the policy %v", c, faults, err)
		}
	}
	for change, want := range map[string]bool{
		`{"metadata":{"labels":{"a":"b"}}}`:                  true,
		`{"spec":{"resource":{"data":{"a":"eA=="}}}}`:        true,
		`{"spec":{"targets":{"allNamespaces":true}}}`:        false,
		`{"spec":{"resource":{"metadata":{"name":"push"}}}}`: false,
		`{"spec":{"resource":{"kind":"ConfigMap"}}}`:         false,
		`{"spec":{"targets":{"includedNamespaces":null}}}`:   true,
	} {
		err := b.Client.Patch(b.Context(), stored.DeepCopy(),
			client.RawPatch("application/merge-patch+json", []byte(change)), client.DryRunAll)
		if (err == nil) != want {
			t.Errorf("%s of a distribution with a fault: %v", change, err)
		}
	}
	all := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"targets":{"allNamespaces":true}}}`))
	if err := b.Client.Patch(b.Context(), own.DeepCopy(), all, client.DryRunAll); err != nil {
		t.Errorf("a distribution that has named the namespace of the manager cannot be changed: %v", err)
	}
}

//go:build envtest

package deletion_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/kruisekit/kruisekit/config/protection"
	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

func row(t *testing.T, group, kind string) protection.Kind {
	t.Helper()
	k, ok := protection.KindOf(group, kind)
	if !ok {
		t.Fatalf("%s is not protected", kind)
	}
	return k
}

// testNamespace goes through the cases of a namespace with the value Cascading.
func testNamespace(t *testing.T, g *reviewtest.Ground) {
	namespace := newObject(row(t, "", "Namespace"), "v1", "", "Cascading")
	create(t, g, namespace)
	try := func(step, want string) {
		t.Helper()
		err := g.Client.Delete(t.Context(), namespace.DeepCopy(), client.DryRunAll)
		if want == "" && err != nil ||
			want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), cascading+want)) {
			t.Errorf("%s: want %q, got %v", step, want, err)
		}
	}
	try("an empty namespace", "")
	pods := map[corev1.PodPhase]*corev1.Pod{}
	for _, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace.GetName(), Name: strings.ToLower(string(phase)), Finalizers: []string{"example.com/hold"},
			},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "app:1"}}, AutomountServiceAccountToken: ptr.To(false),
			},
		}
		create(t, g, pod)
		pod.Status.Phase = phase
		if err := g.Client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		pods[phase] = pod
	}
	try("two pods have not ended", ", active pods 2>0")
	remove(t, g, pods[corev1.PodRunning])
	try("a pod is terminating", ", active pods 1>0")
	remove(t, g, pods[corev1.PodPending])
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.GetName(), Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi"),
			}},
		},
	}
	create(t, g, claim)
	try("the claim is pending", "")
	claim.Status.Phase = corev1.ClaimBound
	if err := g.Client.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	try("the claim is bound", `, "Bound" status pvc 1>0`)
	out, err := g.Kubectl(t.Context(), "delete", "namespace", namespace.GetName())
	if err == nil || !strings.Contains(err.Error()+out,
		`Error from server (Forbidden): admission webhook "vnamespace.kb.io" denied the request: `+cascading+
			`, "Bound" status pvc 1>0`) {
		t.Errorf("kubectl prints %v\n%s", err, out)
	}
	remove(t, g, claim)
	try("the claim is terminating", "")
	remove(t, g, namespace)
	if err := g.Client.Delete(t.Context(), namespace); err != nil {
		t.Errorf("a second deletion: %v", err)
	}
}

// testDefinition goes through the cases of a definition with the value Cascading.
func testDefinition(t *testing.T, g *reviewtest.Ground) {
	definition := newObject(row(t, "apiextensions.k8s.io", "CustomResourceDefinition"), "v1", "", "Cascading")
	create(t, g, definition)
	names := definition.Object["spec"].(map[string]any)["names"].(map[string]any)
	instance := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": names["kind"]}}
	instance.SetName("one")
	instance.SetNamespace(g.Namespace(t))
	instance.SetFinalizers([]string{"example.com/hold"})
	reviewtest.Until(t, "the kind is not served", func(ctx context.Context) error {
		return g.Client.Create(ctx, instance.DeepCopy())
	})
	reviewtest.Until(t, "the instance is not counted", func(ctx context.Context) error {
		err := g.Client.Delete(ctx, definition.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), cascading+", active CRs 1>0") {
			return errors.Join(errors.New("want a refusal"), err)
		}
		return nil
	})
	remove(t, g, instance)
	if err := g.Client.Delete(t.Context(), definition.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("the only instance is terminating: %v", err)
	}
}

// testFollowing deletes what follows from a deletion that was admitted, and what does not.
func testFollowing(t *testing.T, g *reviewtest.Ground) {
	cloneSet, replicaSet := row(t, "apps.kruise.io", "CloneSet"), row(t, "apps", "ReplicaSet")
	refused := protection.Verdict{Code: protection.Always, Message: always}
	collector := as(t, g, protection.GarbageCollectors()[0])
	owned := func(k protection.Kind, owner string) *unstructured.Unstructured {
		o := newObject(k, newestVersion(k), g.Namespace(t), "Always")
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: owner, Kind: "Deployment", Name: "gone", UID: "1", Controller: ptr.To(true),
		}})
		create(t, g, o)
		return o
	}
	gone := newObject(row(t, "", "Namespace"), "v1", "", "-")
	create(t, g, gone)
	inside := newObject(cloneSet, "v1beta1", gone.GetName(), "Always")
	create(t, g, inside)
	cases := map[string]struct {
		why    string
		client client.Client
		object *unstructured.Unstructured
		want   protection.Verdict
	}{
		"a workload's dependent": {
			why:    "the deletion of the Deployment was admitted",
			client: collector,
			object: owned(replicaSet, "apps/v1"),
			want:   protection.Verdict{},
		},
		"another dependent": {
			why:    "the deletion of the owner was never judged",
			client: collector,
			object: owned(cloneSet, "example.com/v1"),
			want:   refused,
		},
		"by another user": {"the owner may exist", g.Client, owned(replicaSet, "apps/v1"), refused},
		"namespace stays": {"nothing precedes this deletion", g.Client, inside, refused},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := wants(c.client.Delete(t.Context(), c.object.DeepCopy(), client.DryRunAll), c.want, policy); err != nil {
				t.Errorf("%s: %v", c.why, err)
			}
		})
	}
	remove(t, g, gone)
	// The API server's own view of namespaces may lag.
	reviewtest.Until(t, "an object of a terminating namespace stays", func(ctx context.Context) error {
		return g.Client.Delete(ctx, inside.DeepCopy(), client.DryRunAll)
	})
}

// testCalls counts what a deletion costs in requests of the webhooks.
func testCalls(t *testing.T, g *reviewtest.Ground) {
	cases := map[string]struct {
		why, group, kind, label string
		want                    map[string]int
	}{
		"no label": {"the webhook is not called", "apps", "Deployment", "-", map[string]int{}},
		"a refused workload": {
			why:   "its namespace may be terminating",
			group: "apps",
			kind:  "Deployment",
			label: "Cascading",
			want:  map[string]int{"get": 1},
		},
		"an empty namespace": {
			why: "itself, pods and claims", kind: "Namespace", label: "Cascading", want: map[string]int{"get": 1, "list": 2},
		},
		"a refused namespace": {"nothing is counted", "", "Namespace", "Always", map[string]int{}},
		"an empty definition": {
			why:   "itself and its instances",
			group: "apiextensions.k8s.io",
			kind:  "CustomResourceDefinition",
			label: "Cascading",
			want:  map[string]int{"get": 1, "list": 1},
		},
		"an unprotected value": {"the webhook is not called", "", "Service", "Cascading", map[string]int{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k := row(t, c.group, c.kind)
			o := newObject(k, newestVersion(k), g.Namespace(t), c.label)
			create(t, g, o)
			got := g.Calls.Of(func() { _ = g.Client.Delete(t.Context(), o.DeepCopy(), client.DryRunAll) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// testWarnings writes values of the label that protect nothing.
func testWarnings(t *testing.T, g *reviewtest.Ground) {
	apply(t, g, filepath.Join("..", "..", "config", "webhook", "deletion-label.yaml"))
	namespace := g.Namespace(t)
	warned := func(k protection.Kind, label string) []string {
		t.Helper()
		said, err := g.Warnings(t, newObject(k, newestVersion(k), namespace, label))
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(said, func(s string) bool { return !strings.Contains(s, key) })
	}
	reviewtest.Until(t, "the policy does not judge", func(context.Context) error {
		if len(warned(row(t, "", "Namespace"), "always")) == 0 {
			return errors.New("no warning")
		}
		return nil
	})
	for _, k := range protection.Kinds() {
		for _, label := range []string{"Always", "Cascading", "always", "", "-"} {
			labels := map[string]string{key: label}
			if label == "-" {
				labels = nil
			}
			faults, said := protection.Label(k, labels), warned(k, label)
			if len(said) != len(faults) || len(faults) > 0 && !strings.Contains(said[0], faults[0].Error()) {
				t.Errorf("%s %q: the API server warns %q, want %v", k.Kind, label, said, faults)
			}
		}
	}
}

// testOutage deletes while the webhooks are configured and none answers: only protected objects wait.
func testOutage(t *testing.T, g *reviewtest.Ground, all []onServer) {
	for _, o := range all {
		code := o.judged().Code
		waits := code != protection.Unprotected && code != protection.Terminating && code != protection.NoEffect
		err := g.Client.Delete(t.Context(), o.object.DeepCopy(), client.DryRunAll)
		if failed := err != nil && strings.Contains(err.Error(), "failed calling webhook"); failed != waits ||
			err != nil && !failed {
			t.Errorf("%s %v (%s): waits for a webhook: %t, %v", o.kind.Kind, o.object.GetLabels(), code, failed, err)
		}
	}
}

// testExempt has the policies exempt users, one of them with a quote in the name.
func testExempt(t *testing.T, g *reviewtest.Ground, all []onServer) {
	const quoted = `o'brien\`
	for _, p := range config.Policies(exempt, quoted) {
		stored := &admissionv1.ValidatingAdmissionPolicy{}
		if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(p.Policy), stored); err != nil {
			t.Fatal(err)
		}
		stored.Spec = p.Policy.Spec
		if err := g.Client.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{exempt, quoted} {
		c := as(t, g, user)
		for _, o := range all {
			reviewtest.Until(t, o.kind.Kind+" is refused to an exempt user", func(ctx context.Context) error {
				return c.Delete(ctx, o.object.DeepCopy(), client.DryRunAll)
			})
		}
	}
	for _, o := range all {
		if err := wants(g.Client.Delete(t.Context(), o.object.DeepCopy(), client.DryRunAll), o.judged(), policy); err != nil {
			t.Errorf("%s to another user: %v", o.kind.Kind, err)
		}
	}
}

// testPrinted shows that the promised message is printed while no webhook answers.
func testPrinted(t *testing.T, g *reviewtest.Ground) {
	namespace := newObject(row(t, "", "Namespace"), "v1", "", "Always")
	create(t, g, namespace)
	out, err := g.Kubectl(t.Context(), "delete", "namespace", namespace.GetName())
	if err == nil || !strings.Contains(err.Error()+out,
		"ValidatingAdmissionPolicy 'kruisekit-deletion-always' with binding 'kruisekit-deletion-always' denied request: "+
			always) {
		t.Errorf("kubectl prints %v\n%s", err, out)
	}
}

// as is a client of an administrator under the name of a user.
func as(t *testing.T, g *reviewtest.Ground, user string) client.Client {
	t.Helper()
	rc := rest.CopyConfig(g.Config)
	rc.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(rc, client.Options{Scheme: g.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func create(t *testing.T, g *reviewtest.Ground, o client.Object) {
	t.Helper()
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, g *reviewtest.Ground, o client.Object) {
	t.Helper()
	if err := g.Client.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

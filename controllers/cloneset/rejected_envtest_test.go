//go:build envtest

package cloneset_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/requests"
)

// The API server accepts the first status of a set, in which the schema requires counters that are zero.
func TestFirstStatus(t *testing.T) {
	b := start(t, cloneset.Options{})
	cases := map[string]struct {
		why      string
		replicas int32
		change   func(*v1beta1.CloneSet)
	}{
		"empty":       {why: "every counter stays zero", replicas: 0},
		"coming up":   {why: "pods are counted before they are ready", replicas: 2},
		"never ready": {why: "only some counters are above zero", replicas: 2, change: gated},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			set := b.create(map[string]string{"empty": "empty", "coming up": "up", "never ready": "gated"}[name],
				test.replicas, test.change)
			b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
				if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedReplicas != test.replicas {
					return fmt.Errorf("%s: status %+v", test.why, s)
				}
				return nil
			})
			b.still()
		})
	}
	if rejected := requests.About(b.asked(), "clonesets/", " 422"); len(rejected) > 0 {
		t.Errorf("rejected: %q", rejected)
	}
}

// gated pods wait for a condition that no component writes.
func gated(set *v1beta1.CloneSet) {
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/never"}}
}

// Templates have no schema, so that without a webhook a set is stored that cannot be decoded. Its status reports why,
// other sets are not concerned, and the set works when it is corrected.
func TestMalformedSet(t *testing.T) {
	b := start(t, cloneset.Options{})
	text := fmt.Sprintf(
		`{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"namespace":%q,"name":"odd"},"spec":{
		"replicas":1,"selector":{"matchLabels":{"app":"odd"}},"template":{"metadata":{"labels":{"app":"odd"}},"spec":{"containers":7}}}}`,
		b.namespace)
	odd := &unstructured.Unstructured{}
	if err := odd.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Create(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	b.kit.Until(func() error {
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(odd), odd); err != nil {
			return err
		}
		if got := fmt.Sprint(odd.Object["status"]); !strings.Contains(got, "FailedScale") ||
			!strings.Contains(got, "spec.template.spec.containers") {
			return fmt.Errorf("status %s", got)
		}
		return nil
	})
	good := b.create("good", 2, inPlace)
	b.eventually(good, settled)
	b.change(good, image("web:2"))
	b.eventually(good, all(settled, images(map[string]int{"web:2": 2})))
	b.still()
	if err := unstructured.SetNestedSlice(odd.Object, []any{map[string]any{"name": "web", "image": "web:1"}}, "spec",
		"template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Update(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	b.kit.Until(func() error {
		var pods corev1.PodList
		if err := b.client.List(t.Context(), &pods, client.InNamespace(b.namespace),
			client.MatchingLabels{"app": "odd"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods of the corrected set", len(pods.Items))
		}
		return nil
	})
}

// A template that the API server rejects is reported in a condition and an event, is tried again after longer and
// longer pauses, and works when it is corrected. What the reconciler rejects by itself is in TestInvalidSets.
func TestRejectedTemplates(t *testing.T) {
	cases := map[string]struct {
		why        string
		spoil, fix func(*v1beta1.CloneSet)
		text       string
	}{
		"template": {
			"the API server rejects the pods", func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Name = "A b" },
			func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Name = "web" }, "spec.containers[0].name",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, cloneset.Options{})
			set := b.create("web", 2, c.spoil)
			b.eventually(set, all(fails(failedScale, c.text), images(map[string]int{}), b.emits("FailedCreate"), counts(0, 0)))
			b.backsOff()
			b.change(set, c.fix)
			b.eventually(set, all(settled, fails(failedScale, "")))
		})
	}
}

const failedScale = v1beta1.CloneSetConditionFailedScale

// backsOff expects a set that fails to be tried again after longer and longer pauses: until the pause is more than a
// second, it is tried about ten times.
func (b *bench) backsOff() {
	b.Helper()
	b.still()
	requests := requests.About(b.asked(), " 4")
	if n := len(requests); n > 24 {
		b.Errorf("%d requests are rejected before the pause is a second:\n%s", n, strings.Join(requests, "\n"))
	}
}

// A quota that rejects pods or claims is reported. The set is tried again after longer and longer pauses, creates no
// surplus of claims, and is complete when the quota is raised.
func TestQuota(t *testing.T) {
	cases := map[string]struct {
		why      string
		resource corev1.ResourceName
		reuse    bool
		claims   int
	}{
		"pods": {
			why: "the claim of the first pod is created, and kept for the pod", resource: corev1.ResourcePods, claims: 1,
		},
		"claims": {"no pod is created without its claim", corev1.ResourcePersistentVolumeClaims, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, cloneset.Options{})
			raise := b.quota(c.resource)
			set := b.create("web", 2, func(s *v1beta1.CloneSet) {
				withClaims(s)
				s.Spec.ScaleStrategy.EnablePVCReuse = c.reuse
			})
			b.eventually(set, all(fails(failedScale, "exceeded quota"), images(map[string]int{}), b.emits("FailedCreate")))
			b.backsOff()
			if n := len(b.claims()); n != c.claims {
				t.Errorf("%s: %d claims were created, want %d", c.why, n, c.claims)
			}
			raise("10")
			b.eventually(set, all(settled, fails(failedScale, "")))
			if n := len(b.claims()); n != 2 {
				t.Errorf("%d claims, want 2", n)
			}
		})
	}
}

// quota allows none of a resource, and returns a function that raises it.
func (b *bench) quota(of corev1.ResourceName) (raise func(string)) {
	b.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "small"}}
	q.Spec.Hard = corev1.ResourceList{of: resource.MustParse("0")}
	if err := b.client.Create(b.Context(), q); err != nil {
		b.Fatal(err)
	}
	raise = func(to string) {
		b.Helper()
		// No controller of quotas runs, which would copy the limits into the status.
		q.Status = corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{of: resource.MustParse(to)}, Used: corev1.ResourceList{of: resource.MustParse("0")},
		}
		if err := b.client.Status().Update(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
	raise("0")
	trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "trial"}}
	trial.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	claim := &v1beta1.CloneSet{}
	withClaims(claim)
	object := client.Object(trial)
	if of == corev1.ResourcePersistentVolumeClaims {
		object = &claim.Spec.VolumeClaimTemplates[0]
		object.SetNamespace(b.namespace)
	}
	b.kit.Until(func() error {
		if err := b.client.Create(b.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll); err == nil ||
			!strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("the quota does not hold yet: %w", err)
		}
		return nil
	})
	return raise
}

// A rejection may have another text each time, as with the number of a request in it. That does not shorten the pause.
func TestRejectionsOfChangingText(t *testing.T) {
	var n atomic.Int64
	b := startWith(t, cloneset.Options{}, func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if _, is := o.(*corev1.Pod); is {
					return fmt.Errorf("rejected, see request %d", n.Add(1))
				}
				return c.Create(ctx, o, opts...)
			},
		})
	})
	set := b.create("web", 1, nil)
	b.eventually(set, all(fails(failedScale, "rejected"), b.emits("FailedCreate")))
	b.still()
	if tries := n.Load(); tries > 12 {
		t.Errorf("%d attempts before the pause is a second", tries)
	}
}

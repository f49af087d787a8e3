//go:build envtest

package cloneset_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/revision"
)

// The schema requires counters that are zero at first.
func TestFirstStatus(t *testing.T) {
	b := start(t, cloneset.Options{})
	cases := map[string]struct {
		why      string
		replicas int32
		change   func(*v1beta1.CloneSet)
	}{
		"empty":       {why: "every counter stays zero", replicas: 0},
		"coming up":   {why: "pods are counted before they are ready", replicas: 2},
		"never ready": {why: "only some counters are ever above zero", replicas: 2, change: gated},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			set := b.create(map[string]string{"empty": "empty", "coming up": "up", "never ready": "gated"}[name], test.replicas, test.change)
			b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
				if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedReplicas != test.replicas {
					return fmt.Errorf("%s: status %+v", test.why, s)
				}
				return nil
			})
			b.still()
		})
	}
	if refused := about(b.requests.take(), "/clonesets/", " 422"); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// gated pods wait for a condition that nobody writes.
func gated(set *v1beta1.CloneSet) {
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/never"}}
}

// The name that the first revision of a new set would have may be another's.
func TestFirstRevisionNameIsTaken(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, nil)
	b.eventually(set, settled)
	name := set.Status.UpdateRevision
	taken := &appsv1.ControllerRevision{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, taken); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	for _, pod := range b.pods(set) {
		if err := b.client.Delete(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
	// It stays, owned by the set that is gone.
	again := b.create("web", 1, nil)
	b.eventually(again, settled)
	if got := again.Status; got.UpdateRevision == name || got.CollisionCount == nil || *got.CollisionCount != 1 {
		t.Errorf("revision %s with %v collisions; %s is another's", got.UpdateRevision, got.CollisionCount, name)
	}
	if !metav1.IsControlledBy(taken, set) || revision.Short(name) == revision.Short(again.Status.UpdateRevision) {
		t.Errorf("revisions %s and %s", name, again.Status.UpdateRevision)
	}
}

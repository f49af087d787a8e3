package pod

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstates"
)

// TestPlace: which pods the step steers. How is for package podstate.
func TestPlace(t *testing.T) {
	state := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	state.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	state.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
	state.Status.PodStates = map[string]v1beta1.PodState{"db-0": {NodeTopologyLabels: map[string]string{"zone": "a"}}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(state)
	if err != nil {
		t.Fatal(err)
	}
	index := podstates.NewIndex()
	if err := index.Put(&unstructured.Unstructured{Object: content}); err != nil {
		t.Fatal(err)
	}
	controller := true
	owner := func(version, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "db", Controller: &controller}}
	}
	for name, c := range map[string]struct {
		why, namespace, pod string
		owners              []metav1.OwnerReference
		steered             bool
	}{
		"recorded":        {"it is steered", "shop", "db-0", owner("apps/v1", "StatefulSet"), true},
		"another version": {"the version does not count", "shop", "db-0", owner("apps/v1beta2", "StatefulSet"), true},
		"not recorded":    {"it stays", "shop", "db-1", owner("apps/v1", "StatefulSet"), false},
		"another group": {
			why:       "it is another workload",
			namespace: "shop",
			pod:       "db-0",
			owners:    owner("apps.kruise.io/v1beta1", "StatefulSet"),
		},
		"another kind":      {"it is another workload", "shop", "db-0", owner("apps/v1", "Deployment"), false},
		"another namespace": {"it is another workload", "cart", "db-0", owner("apps/v1", "StatefulSet"), false},
		"no owner":          {"it is not of the workload", "shop", "db-0", nil, false},
		"a broken owner":    {"it has no group", "shop", "db-0", owner("a/b/c", "StatefulSet"), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.pod, OwnerReferences: c.owners}}
			before := p.DeepCopy()
			got, err := placePods(placeLookups{states: index}).Apply(t.Context(), Request{
				Namespace: c.namespace, Pod: p,
			})
			if err != nil || (got.Pod != nil) != c.steered || c.steered && got.Pod.Spec.NodeSelector["zone"] != "a" {
				t.Errorf("%s: %+v, %v", c.why, got, err)
			}
			if diff := cmp.Diff(before, p); diff != "" {
				t.Errorf("the pod changed: %s", diff)
			}
		})
	}
	late := placePods(placeLookups{
		states: index, filled: func(context.Context) error { return context.DeadlineExceeded },
	})
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", OwnerReferences: owner("apps/v1", "StatefulSet")}}
	var lookup *LookupError
	if _, err := late.Apply(t.Context(), Request{Namespace: "shop", Pod: p}); !errors.As(err, &lookup) {
		t.Errorf("an index that is not filled is %v", err)
	}
}

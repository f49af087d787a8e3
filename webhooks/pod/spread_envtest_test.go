//go:build envtest

package pod_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// patches gives a pod that has a patch as an annotation a subset with that patch.
type patches struct{}

func (patches) Ready(context.Context) error { return nil }

func (patches) Admit(_ context.Context, _ types.NamespacedName, p *corev1.Pod) (*corev1.Pod, error) {
	patch := runtime.RawExtension{Raw: []byte(p.Annotations["patch"])}
	if len(patch.Raw) == 0 {
		return nil, nil
	}
	return subset.Inject(p, &appsv1beta1.WorkloadSpreadSubset{Name: "a", Patch: patch},
		subset.Match{Name: "w", Subset: "a"})
}

// What the patch of a subset removes is gone, and the priority plugin accepts a pod whose class the patch changes.
func testSubsetPatches(t *testing.T, g *ground) {
	namespace := g.Namespace(t)
	never := corev1.PreemptNever
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100, PreemptionPolicy: &never}
	if err := g.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	ws := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": "w"},
		"spec":     map[string]any{"targetRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "web"}},
	}}
	g.send(t, scope.Spreads().Contribute([]*unstructured.Unstructured{ws}))
	create := func(ctx context.Context, patch string) (*corev1.Pod, error) {
		p := newPod(t, namespace,
			`{metadata: {generateName: p-}, spec: {nodeSelector: {a: b}, containers: [{name: main, image: m}]}}`)
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "batch/v1", Kind: "Job", Name: "web", UID: "1", Controller: ptr.To(true),
		}}
		p.Annotations = map[string]string{"patch": patch}
		return p, g.Client.Create(ctx, p)
	}
	g.until(t, "the pods are not sent", func(ctx context.Context) error {
		p, err := create(ctx, `{}`)
		if _, is := subset.MatchOf(p); err == nil && !is {
			err = fmt.Errorf("the annotations are %v", p.Annotations)
		}
		return err
	})
	p, err := create(t.Context(), `{"spec":{"priorityClassName":"high"}}`)
	if err != nil {
		t.Errorf("a pod of another class: %v", err)
	} else if ptr.Deref(p.Spec.Priority, 0) != 100 || ptr.Deref(p.Spec.PreemptionPolicy, "") != never {
		t.Errorf("priority %v, preemption policy %v", p.Spec.Priority, p.Spec.PreemptionPolicy)
	}
	p, err = create(t.Context(), `{"spec":{"nodeSelector":null}}`)
	if err != nil || p.Spec.NodeSelector != nil {
		t.Errorf("node selector %v, %v", p.Spec.NodeSelector, err)
	}
}

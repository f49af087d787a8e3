package objects

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

// RunPods is one step of the scheduler and of the nodes: each pod is bound, or its containers run or end.
func (m *Model) RunPods() {
	m.t.Helper()
	var list corev1.NodeList
	if err := m.Server.List(m.t.Context(), &list); err != nil {
		m.t.Fatal(err)
	}
	nodes := map[string]bool{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = true
	}
	m.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		after := pod.DeepCopy()
		switch {
		case pod.DeletionTimestamp != nil:
			return nil
		case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded: // it never runs again
		case pod.Spec.NodeName == "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		case pod.Spec.NodeName == "":
			if pinned := eligible.NodeOf(pod); pinned == "" || nodes[pinned] {
				after.Spec.NodeName = cmp.Or(pinned, m.Kubelet.Node)
			}
		default:
			m.Kubelet.Run(after)
		}
		return after
	})
	if m.Collects {
		m.CollectClaims()
	}
}

// CollectClaims deletes the claims all of whose owners are gone, as the garbage collector does.
func (m *Model) CollectClaims() {
	m.t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := m.Server.List(m.t.Context(), &list); err != nil {
		m.t.Fatal(err)
	}
	for i := range list.Items {
		claim := &list.Items[i]
		exists := func(ref metav1.OwnerReference) bool {
			owner := &unstructured.Unstructured{}
			owner.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
			err := m.Server.Get(m.t.Context(), types.NamespacedName{Namespace: claim.Namespace, Name: ref.Name}, owner)
			return err == nil && owner.GetUID() == ref.UID
		}
		if len(claim.OwnerReferences) > 0 && !slices.ContainsFunc(claim.OwnerReferences, exists) {
			if err := m.Server.Delete(m.t.Context(), claim); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// testPlace: pods of both kinds of StatefulSets return to their node after a deletion, although their template then
// asks for another one.
func (m *deployed) testPlace(t *testing.T) {
	name := m.Push(t, image.Spec{Name: "place/web:1"}).Name
	for kind, version := range map[string]string{"native": "apps/v1", "advanced": v1beta1.GroupVersion.String()} {
		t.Run(kind, func(t *testing.T) { t.Parallel(); m.testReturns(t, version, name) })
	}
}

func (m *deployed) testReturns(t *testing.T, version, name string) {
	var nodes corev1.NodeList
	if err := m.Client.List(t.Context(), &nodes); err != nil || len(nodes.Items) < 2 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	first, other := nodes.Items[0].Labels[corev1.LabelHostname], nodes.Items[1].Labels[corev1.LabelHostname]
	set := &unstructured.Unstructured{}
	if err := json.Unmarshal(fmt.Appendf(nil, `{
		"apiVersion": %q, "kind": "StatefulSet", "metadata": {"name": "web", "namespace": %q, "annotations": {%q: "true",
		%q: %q}},
		"spec": {
			"replicas": 2, "serviceName": "web", "podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"},
			"selector": {"matchLabels": {"app": "web"}},
			"template": {"metadata": {"labels": {"app": "web"}}, "spec": {
				"terminationGracePeriodSeconds": 0, "nodeSelector": {%q: %q}, "containers": [{"name": "web", "image": %q}]}}}}`,
		version, m.Namespace(t), v1beta1.AnnotationAutoGeneratePersistentPodState,
		v1beta1.AnnotationRequiredPersistentTopology, corev1.LabelHostname, corev1.LabelHostname, first, name),
		set); err != nil {
		t.Fatal(err)
	}
	if err := m.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	before := m.placed(t, set, first, "")
	eventually(t, func(ctx context.Context) error {
		state := &v1beta1.PersistentPodState{}
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(set), state); err != nil {
			return err
		}
		if len(state.Status.PodStates) != 2 ||
			state.Status.PodStates["web-1"].NodeTopologyLabels[corev1.LabelHostname] != first {
			return fmt.Errorf("recorded %+v", state.Status)
		}
		return nil
	})
	elsewhere := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"nodeSelector":{%q:%q}}}}}`, corev1.LabelHostname, other)
	if err := m.Client.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, elsewhere)); err != nil {
		t.Fatal(err)
	}
	if err := m.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.GetNamespace(), Name: "web-1",
	}}); err != nil {
		t.Fatal(err)
	}
	if after := m.placed(t, set, first, before["web-1"]); after["web-0"] != before["web-0"] {
		t.Errorf("pods were %v, and are %v", before, after)
	}
	pod := &corev1.Pod{}
	if err := m.Client.Get(t.Context(),
		types.NamespacedName{Namespace: set.GetNamespace(), Name: "web-1"}, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Annotations[kruise.InjectedPersistentPodStateKey] != "web" ||
		pod.Spec.NodeSelector[corev1.LabelHostname] != first {
		t.Errorf("the pod has %v and %v", pod.Annotations, pod.Spec.NodeSelector)
	}
}

// placed waits until both pods are ready on a node, and the second is not the one of before. It returns their UIDs.
func (m *deployed) placed(
	t *testing.T, set *unstructured.Unstructured, node string, before types.UID,
) map[string]types.UID {
	t.Helper()
	var uids map[string]types.UID
	eventually(t, func(ctx context.Context) error {
		uids = map[string]types.UID{}
		var pods corev1.PodList
		if err := m.Client.List(ctx, &pods, client.InNamespace(set.GetNamespace())); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !ready(pod) || pod.DeletionTimestamp != nil || pod.Spec.NodeName != node {
				return fmt.Errorf("pod %s: ready %t, on %q, selects %v",
					pod.Name, ready(pod), pod.Spec.NodeName, pod.Spec.NodeSelector)
			}
			uids[pod.Name] = pod.UID
		}
		if len(uids) != 2 || uids["web-1"] == before {
			return fmt.Errorf("pods %v", uids)
		}
		return nil
	})
	return uids
}

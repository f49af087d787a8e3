//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// testSpread spreads a CloneSet over three zones of one node each, of which the first has none. The pods of this zone
// are not scheduled, are deleted, and come back in the next zone until that is full; the others run in the last zone. A
// scale-in empties the last zone first.
func (m *deployed) testSpread(t *testing.T) {
	m.pushNginx(t)
	var nodes corev1.NodeList
	if err := m.Client.List(t.Context(), &nodes); err != nil || len(nodes.Items) != 3 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	zones := map[string]string{"a": "none", "b": nodes.Items[1].Name, "c": nodes.Items[2].Name}
	labels, meta := map[string]string{"app": "web"}, metav1.ObjectMeta{Namespace: m.Namespace(t), Name: "web"}
	set := &v1beta1.CloneSet{ObjectMeta: meta, Spec: v1beta1.CloneSetSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "nginx", Image: "nginx:1.27"}},
			TerminationGracePeriodSeconds: ptr.To[int64](1),
		}},
	}}
	ws := &v1beta1.WorkloadSpread{ObjectMeta: meta}
	ws.Spec.TargetReference = &v1beta1.TargetReference{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web",
	}
	for i, name := range []string{"a", "b", "c"} {
		s := v1beta1.WorkloadSpreadSubset{
			Name: name, RequiredNodeSelector: &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{zones[name]}},
			}},
		}
		if i < 2 {
			s.MaxReplicas = ptr.To(intstr.FromInt32(2))
		}
		ws.Spec.Subsets = append(ws.Spec.Subsets, s)
	}
	ws.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
		Type:     v1beta1.AdaptiveWorkloadSpreadScheduleStrategyType,
		Adaptive: &v1beta1.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](5)},
	}
	for _, o := range []client.Object{ws, set} {
		if err := m.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	m.spreadSent(t, meta.Namespace)
	for _, step := range []struct {
		replicas int
		want     string
	}{{4, "map[b:2 c:2]"}, {3, "map[b:2 c:1]"}} {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, step.replicas))
		if err := m.Client.Patch(t.Context(), set, patch); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error { return m.spreadOver(ctx, meta.Namespace, step.want, zones) })
	}
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(ws), ws); err != nil {
			return err
		}
		all := ws.Status.SubsetStatuses
		if len(all) != 3 || all[1].Replicas != 2 || all[1].MissingReplicas != 0 || all[2].Replicas != 1 ||
			len(all[0].Conditions) == 0 || all[0].Conditions[0].Status != metav1.ConditionFalse {
			return fmt.Errorf("status %+v", all)
		}
		return nil
	})
}

// spreadSent waits until the entries of new pods select the namespace.
func (m *deployed) spreadSent(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := m.Client.Get(ctx, types.NamespacedName{Name: "kruise-pods-webhook-configuration"}, c); err != nil {
			return err
		}
		for _, w := range c.Webhooks {
			for _, r := range w.NamespaceSelector.MatchExpressions {
				if r.Operator == metav1.LabelSelectorOpIn && slices.Contains(r.Values, namespace) {
					return nil
				}
			}
		}
		return errors.New("no entry has the namespace")
	})
}

// spreadOver compares ready pods by subset, each on the node of its zone.
func (m *deployed) spreadOver(ctx context.Context, namespace, want string, zones map[string]string) error {
	var pods corev1.PodList
	if err := m.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	by := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		match, _ := subset.MatchOf(pod)
		if !ready(pod) || pod.DeletionTimestamp != nil || pod.Spec.NodeName != zones[match.Subset] {
			return fmt.Errorf("pod %s of subset %q on %q: ready %t", pod.Name, match.Subset, pod.Spec.NodeName, ready(pod))
		}
		by[match.Subset]++
	}
	if got := fmt.Sprint(by); got != want {
		return fmt.Errorf("pods by subset: %s, want %s", got, want)
	}
	return nil
}

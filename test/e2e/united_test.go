//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

const unitedDocument = "../../docs/kinds/uniteddeployment.md"

// testUnitedDocument types what the document says.
func (m *deployed) testUnitedDocument(t *testing.T) {
	m.pushNginx(t)
	namespace := m.Namespace(t)
	for _, words := range typed(t, unitedDocument) {
		line := strings.Join(words, " ")
		said, err := m.Kubectl(t.Context(), append(words, "-n", namespace)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, said)
		}
		switch {
		case line == "get ud zoned":
			eventually(t, func(ctx context.Context) error {
				said, err := m.Kubectl(ctx, append(words, "-n", namespace)...)
				if err != nil {
					return err
				}
				return isShown(unitedDocument, said)
			})
		case words[0] == "get" && words[1] == "pods":
			for zone, want := range map[string]int{"zone-1": 2, "zone-2": 3, "zone-3": 1} {
				if got := strings.Count(said, " "+zone+"\n"); got != want {
					t.Errorf("%d pods in %s:\n%s", got, zone, said)
				}
			}
		case words[0] == "describe" && !strings.Contains(said, "Create 3 Subset (CloneSet)"):
			t.Errorf("no events:\n%s", said)
		case words[0] == "delete":
			return // what follows is about trouble
		}
	}
}

// zoneKey is the label of nodes by which the zones of testUnitedDeployment select them.
const zoneKey = "test.kruisekit.dev/zone"

// zoned is a UnitedDeployment of three zones, of which the first two run at most two pods each.
type zoned struct {
	*deployed
	// zones are those of nodes, by name.
	zones map[string]string
	u     *v1beta1.UnitedDeployment
}

// testUnitedDeployment runs in three zones of one node each. The pod of the middle zone runs in the next zone while the
// middle zone has no node. Once the zone has its node, no ready pod moves back, and the next new pod runs there.
func (m *deployed) testUnitedDeployment(t *testing.T) {
	m.pushNginx(t)
	var nodes corev1.NodeList
	if err := m.Client.List(t.Context(), &nodes); err != nil || len(nodes.Items) != 3 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	z := &zoned{deployed: m, zones: map[string]string{}}
	middle := ""
	for _, node := range nodes.Items {
		zone := node.Labels[corev1.LabelTopologyZone]
		z.zones[node.Name] = zone
		if zone == "zone-2" {
			middle = node.Name
			continue
		}
		m.types(t.Context(), t, "label", "node", node.Name, zoneKey+"="+zone)
	}
	t.Cleanup(func() { m.types(context.WithoutCancel(t.Context()), t, "label", "nodes", "--all", zoneKey+"-") })
	z.create(t)
	begin := time.Now()
	z.runs(t, 2, 0, 1)
	t.Logf("the pod of the middle zone runs elsewhere %s after the creation", time.Since(begin).Round(time.Second/10))
	m.types(t.Context(), t, "label", "node", middle, zoneKey+"=zone-2")
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(z.u), z.u); err != nil {
			return err
		}
		for _, s := range z.u.Status.SubsetStatuses {
			if s.Name == "zone-2" && len(s.Conditions) == 1 && s.Conditions[0].Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("status %+v", z.u.Status.SubsetStatuses)
	})
	z.runs(t, 2, 0, 1)
	m.types(t.Context(), t, "scale", "ud", z.u.Name, "-n", z.u.Namespace, "--replicas=4")
	z.runs(t, 2, 1, 1)
}

// types runs kubectl.
func (m *deployed) types(ctx context.Context, t *testing.T, arguments ...string) {
	t.Helper()
	if said, err := m.Kubectl(ctx, arguments...); err != nil {
		t.Errorf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
}

func (z *zoned) create(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	z.u = &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: z.Namespace(t), Name: "web"}}
	z.u.Spec.Replicas, z.u.Spec.Selector = ptr.To[int32](3), &metav1.LabelSelector{MatchLabels: labels}
	z.u.Spec.Template.CloneSetTemplate = &v1beta1.CloneSetTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: v1beta1.CloneSetSpec{Selector: z.u.Spec.Selector, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Containers:                    []corev1.Container{{Name: "nginx", Image: "nginx:1.27"}},
			},
		}},
	}
	z.u.Spec.Topology.ScheduleStrategy = v1beta1.UnitedDeploymentScheduleStrategy{
		Type: v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType,
		Adaptive: &v1beta1.AdaptiveUnitedDeploymentStrategy{
			RescheduleCriticalSeconds: ptr.To[int32](3), UnschedulableDuration: ptr.To[int32](20),
		},
	}
	for _, zone := range []string{"zone-1", "zone-2", "zone-3"} {
		s := v1beta1.Subset{Name: zone}
		s.NodeSelectorTerm.MatchExpressions = []corev1.NodeSelectorRequirement{{
			Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
		}}
		if zone != "zone-3" {
			s.MaxReplicas = ptr.To(intstr.FromInt32(2))
		}
		z.u.Spec.Topology.Subsets = append(z.u.Spec.Topology.Subsets, s)
	}
	if err := z.Client.Create(t.Context(), z.u); err != nil {
		t.Fatal(err)
	}
}

// runs waits until the zones run as many pods, all of them ready and in the zone of their subset, and the status counts
// them.
func (z *zoned) runs(t *testing.T, want ...int) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := z.Client.List(ctx, &pods, client.InNamespace(z.u.Namespace)); err != nil {
			return err
		}
		count, sum := map[string]int{}, 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			zone := pod.Labels[kruise.SubSetNameLabelKey]
			if !ready(pod) || pod.DeletionTimestamp != nil || z.zones[pod.Spec.NodeName] != zone {
				return fmt.Errorf("pod %s of %s on node %q is %s", pod.Name, zone, pod.Spec.NodeName, pod.Status.Phase)
			}
			count[zone]++
		}
		for i, zone := range []string{"zone-1", "zone-2", "zone-3"} {
			sum += want[i]
			if count[zone] != want[i] {
				return fmt.Errorf("pods %v, want %v", count, want)
			}
		}
		u := &v1beta1.UnitedDeployment{}
		if err := z.Client.Get(ctx, client.ObjectKeyFromObject(z.u), u); err != nil {
			return err
		}
		if s := u.Status; int(s.ReadyReplicas) != sum || int(s.Replicas) != sum || int(s.UpdatedReadyReplicas) != sum {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
}

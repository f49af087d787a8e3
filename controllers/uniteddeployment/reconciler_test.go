package uniteddeployment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// Each kind of workload gets one workload in each subset, whose pods run in the zone of the subset.
func TestKinds(t *testing.T) {
	for _, kind := range []string{"CloneSet", "Advanced", "StatefulSet", "Deployment"} {
		t.Run(kind, func(t *testing.T) {
			m := newModel(t)
			u := m.create("web", 5, "a,b", of(kind))
			m.rest()
			if got, want := m.picture(u), "a 2 [1 1], b 3 [1 1 1]"; got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			m.Look(u)
			s := u.Status
			if s.Replicas != 5 || s.ReadyReplicas != 5 || s.UpdatedReplicas != 5 || s.UpdatedReadyReplicas != 5 ||
				s.CurrentRevision != s.UpdatedRevision || s.LabelSelector != "app=web" {
				t.Fatalf("status %+v", s)
			}
			m.change(u, image("web:2"), scaled(4))
			m.rest()
			if got, want := m.picture(u), "a 2 [2 2], b 2 [2 2]"; got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			m.Look(u)
			if s := u.Status; s.CurrentRevision != s.UpdatedRevision || s.UpdatedReadyReplicas != 4 ||
				s.Conditions[0].Status != "True" {
				t.Fatalf("status %+v", s)
			}
			m.Server.Requests()
			m.Reconcile()
			if requests := m.Server.Requests(); len(requests) > 0 {
				t.Fatalf("an idle pass asks %q", requests)
			}
		})
	}
}

func (m *model) expect(u *v1beta1.UnitedDeployment, want string) {
	m.Helper()
	if got := m.picture(u); got != want {
		m.Look(u)
		m.Fatalf("got  %s\nwant %s\nstatus %+v", got, want, u.Status)
	}
}

func topology(zones ...string) change {
	return func(u *v1beta1.UnitedDeployment) {
		u.Spec.Topology.Subsets = nil
		for _, zone := range zones {
			u.Spec.Topology.Subsets = append(u.Spec.Topology.Subsets, inZone(zone))
		}
	}
}

// The rendered workload has the identity that users and other programs select by.
func TestIdentity(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 1, "a", func(u *v1beta1.UnitedDeployment) {
		u.Spec.Template.CloneSetTemplate.Annotations = map[string]string{"team": "shop"}
		u.Spec.Topology.Subsets[0].Tolerations = []corev1.Toleration{{Key: "rented", Operator: corev1.TolerationOpExists}}
		u.Spec.Topology.Subsets[0].Patch.Raw = []byte(
			`{"spec":{"containers":[{"env":[{"name":"ZONE","value":"a"}],"name":"web"}]}}`)
	})
	m.rest()
	m.Look(u)
	c := m.child(u, "a")
	revision := u.Status.UpdatedRevision
	if !strings.HasPrefix(c.Object.GetName(), "web-a-") || len(c.Object.GetName()) != len("web-a-")+5 ||
		!strings.HasPrefix(revision, "web-") {
		t.Errorf("name %s, revision %s", c.Object.GetName(), revision)
	}
	want := map[string]string{
		"app": "web", kruise.ControllerRevisionHashLabelKey: revision, kruise.SubSetNameLabelKey: "a",
	}
	if diff := cmp.Diff(want, c.Object.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	annotations := map[string]string{
		"team": "shop", v1beta1.AnnotationSubsetPatchKey: string(u.Spec.Topology.Subsets[0].Patch.Raw),
	}
	if diff := cmp.Diff(annotations, c.Object.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	set := &v1beta1.CloneSet{}
	m.get(client.ObjectKeyFromObject(c.Object), set)
	if diff := cmp.Diff(map[string]string{"app": "web", kruise.SubSetNameLabelKey: "a"},
		set.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	pod := set.Spec.Template
	if diff := cmp.Diff(want, pod.Labels); diff != "" {
		t.Errorf("labels of pods (-want +got):\n%s", diff)
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchExpressions[0].Values[0] != "a" || pod.Spec.Tolerations[0].Key != "rented" ||
		pod.Spec.Containers[0].Env[0].Value != "a" {
		t.Errorf("pods %+v", pod.Spec)
	}
	ref := metav1.GetControllerOf(set)
	if ref == nil || ref.APIVersion != "apps.kruise.io/v1beta1" || ref.Kind != "UnitedDeployment" || ref.UID != u.UID ||
		!*ref.BlockOwnerDeletion {
		t.Errorf("owner %+v", ref)
	}
}

// The workloads of another kind go when the template changes its kind.
func TestKindChanges(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 2, "a,b")
	m.rest()
	m.change(u, of("Deployment"))
	m.rest()
	m.expect(u, "a 1 [1], b 1 [1]")
	for _, c := range m.children(u) {
		if c.Kind.Kind != "Deployment" {
			t.Errorf("a %s stays", c.Kind.Kind)
		}
	}
	if events := m.Server.Events(u, "SuccessfulUpdateSubset"); len(events) < 2 ||
		events[len(events)-1].Message != "Delete 2 Subset (Deployment)" {
		t.Errorf("events %+v", events)
	}
}

// A patch reaches the workload without a revision, and goes again.
func TestPatchChanges(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 1, "a")
	m.rest()
	m.Look(u)
	revision := u.Status.UpdatedRevision
	patch := func(text string) change {
		return func(u *v1beta1.UnitedDeployment) { u.Spec.Topology.Subsets[0].Patch.Raw = []byte(text) }
	}
	labels := func() map[string]string {
		set := &v1beta1.CloneSet{}
		m.get(client.ObjectKeyFromObject(m.child(u, "a").Object), set)
		return set.Spec.Template.Labels
	}
	m.change(u, patch(`{"metadata":{"labels":{"pool":"rented","apps.kruise.io/subset-name":null}}}`))
	m.rest()
	if l := labels(); l["pool"] != "rented" || l[kruise.SubSetNameLabelKey] != "a" {
		t.Errorf("labels %v", l)
	}
	m.change(u, patch(`{}`))
	m.rest()
	if l := labels(); l["pool"] != "" {
		t.Errorf("labels %v", l)
	}
	m.Look(u)
	if u.Status.UpdatedRevision != revision {
		t.Error("a patch made a revision")
	}
	m.change(u, patch(`"no patch"`), scaled(3))
	m.rest()
	m.Look(u)
	if c := condition(u, v1beta1.SubsetFailure); c == nil || c.Status != "True" || c.Reason != "Error" ||
		!strings.Contains(c.Message, "a: apply patch") {
		t.Errorf("conditions %+v", u.Status.Conditions)
	}
	m.expect(u, "a 1 [1]")
	m.change(u, patch(`{}`))
	m.rest()
	m.expect(u, "a 3 [1 1 1]")
	m.Look(u)
	if c := condition(u, v1beta1.SubsetFailure); c != nil {
		t.Errorf("conditions %+v", u.Status.Conditions)
	}
}

// Partitions hold back pods of each subset, up to its replicas.
func TestPartitions(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 10, "a,b", partitions(map[string]int32{"a": 4, "b": 3}))
	m.rest()
	m.change(u, image("web:2"))
	m.rest()
	m.expect(u, "a 5/4 [1 1 1 1 2], b 5/3 [1 1 1 2 2]")
	m.Look(u)
	s := u.Status
	if s.CurrentRevision == s.UpdatedRevision || s.UpdatedReplicas != 3 || s.SubsetStatuses[0].Partition != 4 ||
		condition(u, v1beta1.UnitedDeploymentUpdated).Reason != v1beta1.UnitedDeploymentRevisionUpdating {
		t.Fatalf("status %+v", s)
	}
	m.change(u, scaled(2))
	m.rest()
	if c := m.child(u, "a"); c.Partition != 1 {
		t.Errorf("partition %d of 1 replica", c.Partition)
	}
	m.change(u, scaled(10))
	m.rest()
	if c := m.child(u, "a"); c.Partition != 4 {
		t.Errorf("partition %d of 5 replicas", c.Partition)
	}
	m.change(u, partitions(nil))
	m.rest()
	m.expect(u, "a 5 [2 2 2 2 2], b 5 [2 2 2 2 2]")
	m.Look(u)
	if u.Status.CurrentRevision != u.Status.UpdatedRevision {
		t.Errorf("status %+v", u.Status)
	}
}

// OnDelete keeps its strategy, without a partition.
func TestOnDelete(t *testing.T) {
	for _, kind := range []string{"StatefulSet", "Advanced"} {
		m := newModel(t)
		u := m.create("web", 1, "a", of(kind), partitions(map[string]int32{"a": 1}), func(u *v1beta1.UnitedDeployment) {
			if s := u.Spec.Template.StatefulSetTemplate; s != nil {
				s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			} else {
				u.Spec.Template.AdvancedStatefulSetTemplate.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			}
		})
		m.rest()
		strategy, _, _ := unstructured.NestedMap(m.child(u, "a").Object.Object, "spec", "updateStrategy")
		if diff := cmp.Diff(map[string]any{"type": "OnDelete"}, strategy); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// History keeps as many revisions as the limit says, beside those in use, and none is created twice.
func TestHistory(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 1, "a", func(u *v1beta1.UnitedDeployment) { u.Spec.RevisionHistoryLimit = ptr.To[int32](1) })
	m.rest()
	for _, release := range []string{"web:2", "web:3", "web:2"} {
		m.change(u, image(release))
		m.rest()
	}
	var list appsv1.ControllerRevisionList
	if err := m.Server.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, r := range list.Items {
		numbers = append(numbers, fmt.Sprint(r.Revision))
		if r.Labels["app"] != "web" || !metav1.IsControlledBy(&r, u) {
			t.Errorf("revision %+v", r.ObjectMeta)
		}
	}
	slices.Sort(numbers)
	if got := strings.Join(numbers, " "); got != "3 4" {
		t.Errorf("revisions %s", got)
	}
}

// A pod of a StatefulSet that never becomes ready does not keep the update from going on.
func TestStuckStatefulSet(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 1, "a", of("StatefulSet"), image("web:broken"))
	m.rest()
	c := m.child(u, "a")
	for _, ordinal := range []int{0, 1} { // as a StatefulSet names them
		pod := m.pods(c.Owns)[0].DeepCopy()
		pod.Name, pod.UID, pod.ResourceVersion = fmt.Sprintf("%s-%d", c.Object.GetName(), ordinal), "", ""
		if err := m.Server.Put(pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Server.Delete(t.Context(), m.pods(c.Owns)[2], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	m.change(u, image("web:2"), scaled(2), partitions(map[string]int32{"a": 1}))
	m.Reconcile()
	set := &appsv1.StatefulSet{}
	m.get(client.ObjectKeyFromObject(c.Object), set)
	set.Status.ObservedGeneration, set.Status.Replicas, set.Status.UpdatedReplicas,
		set.Status.ReadyReplicas = set.Generation, 2, 0, 0
	m.put(set)
	m.Server.Requests()
	m.Reconcile()
	want := []string{"DELETE pods/" + c.Object.GetName() + "-1 200"}
	got := slices.DeleteFunc(m.Server.Requests(), func(r string) bool { return !strings.HasPrefix(r, "DELETE") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What cannot be used is reported, and leaves the workloads as they are.
func TestInvalid(t *testing.T) {
	cases := map[string]struct {
		change change
		want   string
	}{
		"two templates": {func(u *v1beta1.UnitedDeployment) {
			u.Spec.Template.DeploymentTemplate = &v1beta1.DeploymentTemplateSpec{}
		}, "must have only one template"},
		"a name twice": {topology("a", "a"), "spec.topology.subsets[1].name: Duplicate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			u := m.create("web", 2, "a,b")
			m.rest()
			m.change(u, c.change)
			m.Server.Requests()
			m.rest()
			m.expect(u, "a 1 [1], b 1 [1]")
			m.Look(u)
			failure := condition(u, v1beta1.SubsetFailure)
			if failure == nil || !strings.Contains(failure.Message, c.want) || u.Status.ObservedGeneration != u.Generation {
				t.Errorf("status %+v", u.Status)
			}
			if events := m.Server.Events(u, "Failed SpecifySubsetReplicas"); len(events) != 1 {
				t.Errorf("events %+v", events)
			}
		})
	}
}

// Numbers that do not add up are reported, and all replicas run.
func TestFallback(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 4, "a=2,b=2")
	m.rest()
	m.change(u, scaled(7)) // as an autoscaler does
	m.rest()
	m.expect(u, "a 3 [1 1 1], b 4 [1 1 1 1]")
	m.Look(u)
	if c := condition(u, v1beta1.SubsetFailure); c == nil ||
		c.Message != "the shares of the subsets are 4 replicas, and 7 are wanted" {
		t.Errorf("conditions %+v", u.Status.Conditions)
	}
	if events := m.Server.Events(u, "Failed SpecifySubsetReplicas"); len(events) != 1 {
		t.Errorf("events %+v", events)
	}
	m.change(u, scaled(4))
	m.rest()
	m.expect(u, "a 2 [1 1], b 2 [1 1]")
	m.Look(u)
	if c := condition(u, v1beta1.SubsetFailure); c != nil {
		t.Errorf("conditions %+v", u.Status.Conditions)
	}
}

// What the object decides is written again. Fields of other writers stay until the template changes.
func TestOtherWriters(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 1, "a")
	m.rest()
	set := &v1beta1.CloneSet{}
	name := client.ObjectKeyFromObject(m.child(u, "a").Object)
	edit := func(change func()) {
		t.Helper()
		m.get(name, set)
		before := set.DeepCopy()
		change()
		if err := m.Server.Patch(t.Context(), set, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	edit(func() {
		set.Labels["team"], set.Spec.MinReadySeconds = "shop", 7
		set.Spec.ScaleStrategy.PodsToDelete = []string{"x"}
		set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{
			Name: "injected", Image: "sidecar:1",
		})
	})
	m.Server.Requests()
	m.Reconcile()
	if requests := m.Server.Requests(); len(requests) > 0 {
		t.Errorf("fields of others ask for %q", requests)
	}
	edit(func() { set.Spec.Replicas = ptr.To[int32](9) })
	m.pass(time.Second)
	m.get(name, set)
	if *set.Spec.Replicas != 1 || set.Labels["team"] != "shop" || set.Spec.MinReadySeconds != 7 ||
		len(set.Spec.ScaleStrategy.PodsToDelete) != 1 || len(set.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("%d replicas, labels %v, spec %+v", *set.Spec.Replicas, set.Labels, set.Spec)
	}
	m.change(u, image("web:2"))
	m.pass(time.Second)
	m.get(name, set)
	if set.Labels["team"] != "shop" || set.Spec.MinReadySeconds != 0 || len(set.Spec.Template.Spec.Containers) != 1 {
		t.Errorf("after a change of the template: labels %v, spec %+v", set.Labels, set.Spec)
	}
}

package sidecarset_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/test/requests"
)

// TestInjectionPaused: pods that are there are updated, though new ones get nothing.
func TestInjectionPaused(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh", maxUnavailable("2"))
	m.fleet(2, set)
	m.counted(set, 2, 2, 2, 2)
	m.change(set, image("mesh:2"), func(s *v1beta1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true })
	selection, err := sidecar.Select(&m.pods()[0], nil, parsed(t, set))
	if err != nil || len(selection.Sets) > 0 {
		t.Errorf("a new pod would get %v, %v", selection, err)
	}
	m.counted(set, 2, 2, 2, 2)
	m.runs("mesh=mesh:2", "mesh=mesh:2")
}

// TestLegacyRecords: what an old release wrote on a pod is read, and becomes what others are, also that of other sets.
func TestLegacyRecords(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh")
	m.pod("pod-0", []*v1beta1.SidecarSet{set})
	m.counted(set, 1, 1, 1, 1)
	legacy := func(key string) string {
		data, err := json.Marshal(map[string]string{set.Name: set.Annotations[key], "former": "h"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	m.annotate("pod-0", map[string]string{
		kruise.SidecarSetHashKey:             legacy(kruise.SidecarSetHashKey),
		kruise.SidecarSetHashWithoutImageKey: legacy(kruise.SidecarSetHashWithoutImageKey),
	})
	m.Still()
	m.counted(set, 1, 1, 1, 1)
	m.change(set, image("mesh:2"))
	m.counted(set, 1, 1, 1, 1)
	m.runs("mesh=mesh:2")
	got := map[string]kruise.SidecarSetInjected{}
	if err := json.Unmarshal([]byte(m.annotations("pod-0")[kruise.SidecarSetHashKey]), &got); err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{}
	for name, entry := range got {
		hashes[name] = entry.SidecarSetName + " " + entry.Hash
	}
	want := map[string]string{set.Name: set.Name + " " + set.Annotations[kruise.SidecarSetHashKey], "former": "former h"}
	if diff := cmp.Diff(want, hashes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMetadata: what a set writes on pods comes with the next image, and makes a revision of its own before.
func TestMetadata(t *testing.T) {
	writes := func(merge string) func(*v1beta1.SidecarSet) {
		return func(s *v1beta1.SidecarSet) {
			s.Spec.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{
				{PatchPolicy: v1beta1.SidecarSetMergePatchJsonPatchPolicy, Annotations: map[string]string{"merged": merge}},
				{PatchPolicy: v1beta1.SidecarSetOverwritePatchPolicy, Annotations: map[string]string{"over": merge}},
				{PatchPolicy: v1beta1.SidecarSetRetainPatchPolicy, Annotations: map[string]string{"kept": merge, "new": merge}},
			}
		}
	}
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh")
	m.pod("pod-0", []*v1beta1.SidecarSet{set}, func(p *corev1.Pod) {
		p.Annotations = map[string]string{"merged": `{"b":2}`, "over": "pod", "kept": "pod"}
	})
	m.counted(set, 1, 1, 1, 1)
	m.Still()
	m.Server.Requests()
	m.change(set, writes(`{"a":1}`))
	m.kept(set, 1, 2)
	m.latest(set)
	m.Still()
	if asked := requests.About(m.Server.Requests(), "pods/"); len(asked) > 0 {
		t.Errorf("pods are written for annotations alone: %v", asked)
	}
	m.change(set, image("mesh:2"))
	m.counted(set, 1, 1, 1, 1)
	got := m.annotations("pod-0")
	maps.DeleteFunc(got, func(key, _ string) bool { return sidecar.IsRecord(key) })
	if diff := cmp.Diff(map[string]string{"merged": `{"a":1,"b":2}`, "over": `{"a":1}`, "kept": "pod", "new": `{"a":1}`},
		got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, rev := range m.revisions(set) {
		var data struct {
			Spec map[string]any `json:"spec"`
		}
		if err := json.Unmarshal(rev.Data.Raw, &data); err != nil {
			t.Fatal(err)
		}
		keys := slices.Sorted(maps.Keys(data.Spec))
		if diff := cmp.Diff([]string{
			"$patch", "containers", "imagePullSecrets", "initContainers", "patchPodMetadata", "volumes",
		}, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rev.Name, diff)
		}
	}
}

// TestPreferred: pods of more weight go first, and those of a larger number.
func TestPreferred(t *testing.T) {
	weights := &kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{
		{Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kind": "foo"}}},
		{Weight: 30, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kind": "bar"}}},
	}}
	orders := &kruise.UpdatePriorityStrategy{OrderPriority: []kruise.UpdatePriorityOrderTerm{{OrderedKey: "number"}}}
	for name, c := range map[string]struct {
		strategy *kruise.UpdatePriorityStrategy
		label    string
		values   []string
		want     []string
	}{
		"weights": {weights, "kind", []string{"bar", "none", "foo", "bar", "foo"}, []string{"pod-2", "pod-4"}},
		"numbers": {orders, "number", []string{"5", "20", "10"}, []string{"pod-1", "pod-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, sidecarset.Options{}, nil)
			set := m.create("mesh", maxUnavailable("100%"), partition(fmt.Sprint(len(c.values)-2)), func(s *v1beta1.SidecarSet) {
				s.Spec.UpdateStrategy.PriorityStrategy = c.strategy
			})
			for i, value := range c.values {
				m.pod(fmt.Sprintf("pod-%d", i), []*v1beta1.SidecarSet{set}, func(p *corev1.Pod) { p.Labels[c.label] = value })
			}
			n := int32(len(c.values))
			m.counted(set, n, n, n, n)
			m.change(set, image("mesh:2"))
			m.counted(set, n, 2, n, 2)
			m.Still()
			var got []string
			for _, pod := range m.pods() {
				if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == "mesh:2" }) {
					got = append(got, pod.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTwoSets: as long as one set cannot update a pod the condition says so, whatever another set does to that pod.
func TestTwoSets(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	mesh, logs := m.create("mesh", maxUnavailable("100%")), m.create("logs", maxUnavailable("100%"))
	m.fleet(2, mesh, logs)
	m.counted(mesh, 2, 2, 2, 2)
	m.counted(logs, 2, 2, 2, 2)
	m.change(mesh, environment("1"))
	m.change(logs, image("logs:2"))
	m.counted(logs, 2, 2, 2, 2)
	m.counted(mesh, 2, 0, 2, 0)
	m.Still()
	m.marked(corev1.ConditionFalse, kruise.SidecarSetUpgradableReasonImmutableField)
	m.change(mesh, func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Env = nil }, image("mesh:2"))
	m.counted(mesh, 2, 2, 2, 2)
	m.marked(corev1.ConditionTrue, kruise.SidecarSetUpgradableReasonAll)
	m.runs("logs=logs:2", "logs=logs:2", "mesh=mesh:2", "mesh=mesh:2")
}

// TestUnreadRecords: a pod whose records cannot be read stops no other update, and is updated once the records are
// mended.
func TestUnreadRecords(t *testing.T) {
	for name, spoilt := range map[string]map[string]string{
		"hash":       {kruise.SidecarSetHashKey: `[]`},
		"of another": {kruise.SidecarSetHashKey: `{"another":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, sidecarset.Options{}, nil)
			set := m.create("mesh", maxUnavailable("100%"))
			m.fleet(3, set)
			m.counted(set, 3, 3, 3, 3)
			right := m.annotations("pod-0")[kruise.SidecarSetHashKey]
			m.annotate("pod-0", spoilt)
			m.counted(set, 3, 2, 3, 2)
			m.change(set, image("mesh:2"))
			m.counted(set, 3, 2, 3, 2)
			m.Still()
			m.runs("mesh=mesh:1", "mesh=mesh:2", "mesh=mesh:2")
			m.until(func() error { // once for each state of the set
				if n := m.events(set, "FailedUpdate"); n != 2 {
					return fmt.Errorf("the event is emitted %d times", n)
				}
				return nil
			})
			m.annotate("pod-0", map[string]string{kruise.SidecarSetHashKey: right})
			m.counted(set, 3, 3, 3, 3)
		})
	}
	t.Run("state", func(t *testing.T) {
		m := newModel(t, sidecarset.Options{}, nil)
		set := m.create("mesh")
		m.fleet(1, set)
		m.counted(set, 1, 1, 1, 1)
		m.annotate("pod-0", map[string]string{kruise.SidecarSetInPlaceUpdateStateKey: `"x`})
		m.counted(set, 1, 1, 0, 0)
		m.change(set, image("mesh:2"))
		m.counted(set, 1, 1, 1, 1)
		m.runs("mesh=mesh:2")
	})
}

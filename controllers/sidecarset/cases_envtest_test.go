//go:build envtest

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
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/sidecar"
)

// annotate changes annotations of a pod behind everybody's back.
func (b *bench) annotate(pod string, annotations map[string]string) {
	b.Helper()
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		b.Fatal(err)
	}
	b.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: pod}}, string(data))
}

func (b *bench) annotations(pod string) map[string]string {
	b.Helper()
	is := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: pod}}
	b.get(is)
	return is.Annotations
}

// TestInjectionPaused: pods that are there are updated, though new ones get nothing.
func TestInjectionPaused(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", maxUnavailable("2"))
	b.fleet(2, set)
	b.counted(set, 2, 2, 2, 2)
	b.change(set, image("mesh:2"), func(s *v1beta1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true })
	selection, err := sidecar.Select(&b.pods()[0], nil, parsed(t, set))
	if err != nil || len(selection.Sets) > 0 {
		t.Errorf("a new pod would get %v, %v", selection, err)
	}
	b.counted(set, 2, 2, 2, 2)
	b.runs("mesh=mesh:2", "mesh=mesh:2")
}

// TestLegacyRecords: what an old release wrote on a pod is read, and becomes what others are, also that of other sets.
func TestLegacyRecords(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh")
	b.pod("pod-0", []*v1beta1.SidecarSet{set})
	b.counted(set, 1, 1, 1, 1)
	legacy := func(key string) string {
		data, err := json.Marshal(map[string]string{set.Name: set.Annotations[key], "former": "h"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	b.annotate("pod-0", map[string]string{
		pub.SidecarSetHashKey: legacy(pub.SidecarSetHashKey), pub.SidecarSetHashWithoutImageKey: legacy(pub.SidecarSetHashWithoutImageKey),
	})
	b.Still()
	b.counted(set, 1, 1, 1, 1)
	b.change(set, image("mesh:2"))
	b.counted(set, 1, 1, 1, 1)
	b.runs("mesh=mesh:2")
	got := map[string]pub.SidecarSetInjected{}
	if err := json.Unmarshal([]byte(b.annotations("pod-0")[pub.SidecarSetHashKey]), &got); err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{}
	for name, entry := range got {
		hashes[name] = entry.SidecarSetName + " " + entry.Hash
	}
	want := map[string]string{set.Name: set.Name + " " + set.Annotations[pub.SidecarSetHashKey], "former": "former h"}
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
	b := start(t, sidecarset.Options{})
	set := b.create("mesh")
	b.pod("pod-0", []*v1beta1.SidecarSet{set}, func(p *corev1.Pod) {
		p.Annotations = map[string]string{"merged": `{"b":2}`, "over": "pod", "kept": "pod"}
	})
	b.counted(set, 1, 1, 1, 1)
	b.Still()
	b.Asked()
	b.change(set, writes(`{"a":1}`))
	b.kept(set, 1, 2)
	b.latest(set)
	b.Still()
	if asked := about(b.Asked(), "pods/"); len(asked) > 0 {
		t.Errorf("pods are written for annotations alone: %v", asked)
	}
	b.change(set, image("mesh:2"))
	b.counted(set, 1, 1, 1, 1)
	got := b.annotations("pod-0")
	maps.DeleteFunc(got, func(key, _ string) bool { return sidecar.IsRecord(key) })
	if diff := cmp.Diff(map[string]string{"merged": `{"a":1,"b":2}`, "over": `{"a":1}`, "kept": "pod", "new": `{"a":1}`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, rev := range b.revisions(set) {
		var data struct {
			Spec map[string]any `json:"spec"`
		}
		if err := json.Unmarshal(rev.Data.Raw, &data); err != nil {
			t.Fatal(err)
		}
		keys := slices.Sorted(maps.Keys(data.Spec))
		if diff := cmp.Diff([]string{"$patch", "containers", "imagePullSecrets", "initContainers", "patchPodMetadata", "volumes"}, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rev.Name, diff)
		}
	}
}

// TestPreferred: pods of more weight go first, and those of a larger number.
func TestPreferred(t *testing.T) {
	weights := &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{
		{Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kind": "foo"}}},
		{Weight: 30, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kind": "bar"}}},
	}}
	orders := &pub.UpdatePriorityStrategy{OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "number"}}}
	for name, c := range map[string]struct {
		strategy *pub.UpdatePriorityStrategy
		label    string
		values   []string
		want     []string
	}{
		"weights": {weights, "kind", []string{"bar", "none", "foo", "bar", "foo"}, []string{"pod-2", "pod-4"}},
		"numbers": {orders, "number", []string{"5", "20", "10"}, []string{"pod-1", "pod-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, sidecarset.Options{})
			set := b.create("mesh", maxUnavailable("100%"), partition(fmt.Sprint(len(c.values)-2)), func(s *v1beta1.SidecarSet) {
				s.Spec.UpdateStrategy.PriorityStrategy = c.strategy
			})
			for i, value := range c.values {
				b.pod(fmt.Sprintf("pod-%d", i), []*v1beta1.SidecarSet{set}, func(p *corev1.Pod) { p.Labels[c.label] = value })
			}
			n := int32(len(c.values))
			b.counted(set, n, n, n, n)
			b.change(set, image("mesh:2"))
			b.counted(set, n, 2, n, 2)
			b.Still()
			var got []string
			for _, pod := range b.pods() {
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

// TestRecreatedSet: a set that comes back under its name takes its pods over, and has a history of its own beside what is left of
// the former.
func TestRecreatedSet(t *testing.T) {
	b := start(t, sidecarset.Options{})
	former := b.create("mesh")
	b.fleet(2, former)
	b.counted(former, 2, 2, 2, 2)
	old := b.revisions(former)[0]
	if err := b.Client.Delete(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	set := b.create("mesh")
	b.counted(set, 2, 2, 2, 2)
	if set.Status.LatestRevision == old.Name || *set.Status.CollisionCount != 1 {
		t.Errorf("it goes by the revision of the former set: %+v", set.Status)
	}
	b.change(set, image("mesh:2"))
	b.counted(set, 2, 2, 2, 2)
	for _, rev := range b.revisions(set) {
		if owner := metav1.GetControllerOf(rev); (rev.Name == old.Name) != (owner.UID == former.UID) {
			t.Errorf("%s is of %s", rev.Name, owner.UID)
		}
	}
	b.runs("mesh=mesh:2", "mesh=mesh:2")
}

// TestUnreadRecords: a pod whose records somebody has spoilt keeps no other from its update, and has its own when they are mended.
func TestUnreadRecords(t *testing.T) {
	for name, spoilt := range map[string]map[string]string{
		"hash":       {pub.SidecarSetHashKey: `[]`},
		"of another": {pub.SidecarSetHashKey: `{"another":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, sidecarset.Options{})
			set := b.create("mesh", maxUnavailable("100%"))
			b.fleet(3, set)
			b.counted(set, 3, 3, 3, 3)
			right := b.annotations("pod-0")[pub.SidecarSetHashKey]
			b.annotate("pod-0", spoilt)
			b.counted(set, 3, 2, 3, 2)
			b.change(set, image("mesh:2"))
			b.counted(set, 3, 2, 3, 2)
			b.Still()
			b.runs("mesh=mesh:1", "mesh=mesh:2", "mesh=mesh:2")
			b.Until(func() error { // once for each state of the set
				if n := b.events("FailedUpdate"); n != 2 {
					return fmt.Errorf("it is told %d times", n)
				}
				return nil
			})
			b.annotate("pod-0", map[string]string{pub.SidecarSetHashKey: right})
			b.counted(set, 3, 3, 3, 3)
		})
	}
	t.Run("state", func(t *testing.T) {
		b := start(t, sidecarset.Options{})
		set := b.create("mesh")
		b.fleet(1, set)
		b.counted(set, 1, 1, 1, 1)
		b.annotate("pod-0", map[string]string{pub.SidecarSetInPlaceUpdateStateKey: `"x`})
		b.counted(set, 1, 1, 0, 0)
		b.change(set, image("mesh:2"))
		b.counted(set, 1, 1, 1, 1)
		b.runs("mesh=mesh:2")
	})
}

// TestUnfitVersion: a set of which no revision can be made, because nobody judged it when it came, is told of once, and is
// reconciled when it is mended.
func TestUnfitVersion(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", version("no label"))
	told := func() error {
		if n := b.events("InvalidSpec"); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	}
	b.Until(told)
	b.fleet(1, set)
	b.Still()
	if err := told(); err != nil {
		t.Error(err)
	}
	b.Asked()
	b.Still()
	if asked := b.Asked(); len(asked) > 0 {
		t.Errorf("nothing has changed, and it asks %v", asked)
	}
	b.change(set, version("a-label"))
	b.counted(set, 1, 1, 1, 1)
	if revs := b.revisions(set); len(revs) != 1 || revs[0].Labels[v1beta1.SidecarSetCustomVersionLabel] != "a-label" {
		t.Errorf("the history is %v", revs)
	}
}

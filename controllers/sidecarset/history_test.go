package sidecarset_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/sidecar"
)

// TestHistoryInUse: what a pod has, and what injection is pinned to, stays.
func TestHistoryInUse(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh", notUpdate, func(s *v1beta1.SidecarSet) { s.Spec.RevisionHistoryLimit = ptr.To(int32(1)) })
	m.latest(set)
	m.pod("pod-0", []*v1beta1.SidecarSet{set}, func(p *corev1.Pod) { p.Annotations = map[string]string{unready: ""} })
	m.counted(set, 1, 1, 0, 0)
	m.change(set, image("mesh:2"), version("pinned"))
	m.latest(set)
	m.change(set, image("mesh:3"), version(""), func(s *v1beta1.SidecarSet) {
		s.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: ptr.To("pinned")}
	})
	m.latest(set)
	m.kept(set, 1, 2, 3)
	m.change(set, image("mesh:4"))
	m.latest(set)
	m.kept(set, 1, 2, 4)
}

// TestPinned: a pod that was made as the set once was is updated to what the set is, not to what is pinned.
func TestPinned(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh", version("0"))
	m.latest(set)
	for i := 1; i <= 5; i++ {
		m.change(set, image(fmt.Sprint("mesh:", i+1)), version(fmt.Sprint(i)))
		m.latest(set)
	}
	m.change(set, paused(true), func(s *v1beta1.SidecarSet) {
		s.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: ptr.To("3")}
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "pod-0"}}
	resolved, err := sidecar.Resolve(parsed(t, set)[0], pod, m.revisions(set), 0)
	if err != nil {
		t.Fatal(err)
	}
	former := resolved.Object().DeepCopy()
	former.ResourceVersion = ""
	m.pod("pod-0", []*v1beta1.SidecarSet{former})
	m.runs("mesh=mesh:4")
	m.counted(set, 1, 0, 1, 0)
	m.change(set, paused(false))
	m.counted(set, 1, 1, 1, 1)
	m.runs("mesh=mesh:6")
}

// TestHistory: the newest revisions stay, as many as the limit allows. A spec that was there before is the newest one
// again, under its old name.
func TestHistory(t *testing.T) {
	m := newModel(t, sidecarset.Options{}, nil)
	set := m.create("mesh", version("v1"))
	m.latest(set)
	for i := 2; i <= 15; i++ {
		m.change(set, image(fmt.Sprint("mesh:", i)), version(fmt.Sprint("v", i)))
		m.latest(set)
	}
	m.kept(set, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	twelve := m.revisions(set)[6]
	m.change(set, image("mesh:12"), version("again"))
	if got := m.latest(set); got != twelve.Name {
		t.Errorf("want %s again, got %s", twelve.Name, got)
	}
	m.kept(set, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)
	newest := m.revisions(set)[9]
	want := map[string]string{
		owner: m.namespace, v1beta1.SidecarSetNameLabel: set.Name, v1beta1.SidecarSetCustomVersionLabel: "again",
		kruise.RevisionHashLabelKey: newest.Labels[kruise.RevisionHashLabelKey],
	}
	if diff := cmp.Diff(want, newest.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if newest.Annotations[kruise.SidecarSetHashKey] != set.Annotations[kruise.SidecarSetHashKey] ||
		!metav1.IsControlledBy(newest, set) {
		t.Errorf("the revision does not tell what it is of: %+v", newest.ObjectMeta)
	}
	m.change(set, func(s *v1beta1.SidecarSet) { s.Spec.RevisionHistoryLimit = ptr.To(int32(0)) })
	m.kept(set, 16)
}

// TestCanary: sets that update nothing do not look at their pods any more, unless that is asked for.
func TestCanary(t *testing.T) {
	for refresh, ready := range map[bool]int32{false: 0, true: 2} {
		m := newModel(t, sidecarset.Options{RefreshNotUpdate: refresh}, nil)
		base := m.create("base", notUpdate)
		canary := m.create("canary", notUpdate, func(s *v1beta1.SidecarSet) {
			s.Annotations = map[string]string{
				v1beta1.SidecarSetCanaryAnnotation: "true", v1beta1.SidecarSetBaseAnnotation: base.Name,
			}
		})
		for i := range 2 {
			m.pod(fmt.Sprint("pod-", i), []*v1beta1.SidecarSet{canary}, func(p *corev1.Pod) {
				p.Annotations = map[string]string{unready: ""}
			})
		}
		m.counted(canary, 2, 2, 0, 0)
		for _, pod := range m.pods() {
			m.patch(&pod, `{"metadata":{"annotations":{"`+unready+`":null}}}`)
		}
		m.Still()
		m.counted(canary, 2, 2, ready, ready)
		m.counted(base, 0, 0, 0, 0)
		m.runs("canary=canary:1", "canary=canary:1")
	}
}

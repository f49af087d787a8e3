package sidecarset_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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

package cloneset_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
)

// To recreate a pod, one pass marks it and a later pass deletes it. While the deletion fails, no other pod is marked.
func TestRecreateMarksFirst(t *testing.T) {
	m := newModelWith(t, cloneset.Options{}, func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
				return fmt.Errorf("%s cannot be deleted now", o.GetName())
			},
		})
	})
	set := m.create("web", 5, nil)
	m.eventually(set, settled)
	m.change(set, image("web:2"))
	m.eventually(set,
		all(fails(v1beta1.CloneSetConditionFailedScale, "cannot be deleted now"), m.emitted("FailedDelete", 1)))
	marked := 0
	for _, pod := range m.pods(set) {
		if _, ok := pod.Labels[kruise.SpecifiedDeleteKey]; ok {
			marked++
		}
	}
	if n := len(m.Server.Events(set, "SuccessfulUpdatePodReCreate")); marked != 1 || n != 1 || len(m.pods(set)) != 5 {
		t.Errorf("%d of %d pods are marked, with %d events", marked, len(m.pods(set)), n)
	}
}

// An update in place keeps the pod and records its state. A change that a running pod cannot take recreates the pod.
func TestInPlaceIfPossible(t *testing.T) {
	cases := map[string]struct {
		why       string
		options   cloneset.Options
		change    func(*corev1.PodTemplateSpec)
		recreated bool
	}{
		"image": {
			why:     "the pod stays",
			options: cloneset.Options{},
			change:  func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "web:2" },
		},
		"image, short hashes": {
			why:     "the pod stays",
			options: cloneset.Options{ShortHash: true},
			change:  func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "web:2" },
		},
		"resources of another class": {
			why:     "the class of a pod is fixed",
			options: cloneset.Options{Installed: &inplace.Installation{Resize: true}},
			change: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
			},
			recreated: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, c.options)
			set := m.create("web", 1, inPlace)
			m.eventually(set, settled)
			before := m.pods(set)[0]
			m.change(set, func(s *v1beta1.CloneSet) { c.change(&s.Spec.Template) })
			m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if set.Status.UpdateRevision == before.Labels[kruise.PodRevisionLabelKey] {
					return fmt.Errorf("status %+v", set.Status)
				}
				return settled(set, pods)
			})
			now := m.pods(set)[0]
			if (now.UID != before.UID) != c.recreated {
				t.Fatalf("%s: %s became %s", c.why, before.Name, now.Name)
			}
			want, short := set.Status.UpdateRevision, revision.Short(set.Status.UpdateRevision)
			if c.options.ShortHash {
				want = short
			}
			if now.Labels[kruise.PodRevisionLabelKey] != want || now.Labels[kruise.PodTemplateHashLabelKey] != short {
				t.Errorf("labels %v, want %s and %s", now.Labels, want, short)
			}
			if state := now.Annotations[kruise.InPlaceUpdateStateKey]; !c.recreated &&
				!strings.Contains(state, `"lastContainerStatuses":{"web":{"imageID":"sha256:web-1"`) {
				t.Errorf("the state does not record the old image: %s", state)
			}
			if n := len(m.Server.Events(set, "SuccessfulUpdatePodReCreate")); (n == 1) != c.recreated {
				t.Errorf("%d events", n)
			}
		})
	}
}

// An older revision without annotations becomes the newest, and gets the annotations.
func TestBareRevisionIsRaised(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		withClaims(s)
	})
	m.eventually(set, settled)
	first := &appsv1.ControllerRevision{}
	first.Namespace, first.Name = m.namespace, set.Status.UpdateRevision
	m.change(set, image("web:2"))
	m.eventually(set, all(settled, images(map[string]int{"web:2": 1})))
	bare := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`))
	if err := m.client.Patch(t.Context(), first, bare); err != nil {
		t.Fatal(err)
	}
	m.change(set, image("web:1"))
	m.eventually(set, all(settled, images(map[string]int{"web:1": 1})))
	m.look(first)
	if first.Revision != 3 || first.Annotations[kruise.CloneSetVolumeClaimTemplateHashKey] == "" ||
		set.Status.UpdateRevision != first.Name {
		t.Errorf("revision %d of %s, annotations %v", first.Revision, first.Name, first.Annotations)
	}
}

// Where the name of the first revision belongs to the set of another UID, the revision gets another name.
func TestFirstRevisionNameIsTaken(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, nil)
	m.eventually(set, settled)
	name := set.Status.UpdateRevision
	taken := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}}
	m.look(taken)
	if err := m.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	m.delete(m.pods(set)...)
	// The revision stays, owned by the deleted set.
	again := m.create("web", 1, nil)
	m.eventually(again, settled)
	if got := again.Status; got.UpdateRevision == name || got.CollisionCount == nil || *got.CollisionCount != 1 {
		t.Errorf("revision %s with %v collisions; %s belongs to the deleted set",
			got.UpdateRevision, got.CollisionCount, name)
	}
	if !metav1.IsControlledBy(taken, set) || revision.Short(name) == revision.Short(again.Status.UpdateRevision) {
		t.Errorf("revisions %s and %s", name, again.Status.UpdateRevision)
	}
}

package workload_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
)

func storedRevision(t *testing.T, name, image string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Revision:   number,
		Data:       runtime.RawExtension{Raw: rev(t, name, image).Data},
	}
}

func TestSetRevisions(t *testing.T) {
	first, second := storedRevision(t, "web-1", "web:1", 1), storedRevision(t, "web-2", "web:2", 2)
	for _, c := range []struct {
		why             string
		stored          []*appsv1.ControllerRevision
		current         string
		wantCurrent     string
		wantUpdate      string
		wantNewRevision bool
	}{
		{
			why:         "pods go from the current revision to the wanted one",
			stored:      []*appsv1.ControllerRevision{first, second},
			current:     "web-1",
			wantCurrent: "web-1",
			wantUpdate:  "web-2",
		},
		{
			why:         "without a current revision all pods go to the wanted one",
			stored:      []*appsv1.ControllerRevision{first, second},
			wantCurrent: "web-2",
			wantUpdate:  "web-2",
		},
		{"a revision that is about to be stored is known", []*appsv1.ControllerRevision{first}, "web-1", "web-1", "", true},
		{"the first revision is also the current one", nil, "", "", "", true},
	} {
		r := revision.Resolve(revision.Input{Owner: "web", Data: second.Data.Raw, Have: c.stored, Current: c.current})
		store, err := revision.Store(revision.Wanted{Resolution: r})
		if err != nil {
			t.Fatal(err)
		}
		var in workload.Input
		in.SetRevisions(r, store.Newest(), c.stored)
		if c.wantNewRevision {
			c.wantUpdate = r.Name
		}
		if c.wantCurrent == "" {
			c.wantCurrent = c.wantUpdate
		}
		if in.Update.Name != c.wantUpdate || in.Current.Name != c.wantCurrent || len(in.Revisions) != len(c.stored) ||
			!cmp.Equal(in.Update.Data, second.Data.Raw) {
			t.Errorf("%s: update %s, current %s, %d stored", c.why, in.Update.Name, in.Current.Name, len(in.Revisions))
		}
	}
}

// The templates of creations are those of their revision and role.
func TestTemplate(t *testing.T) {
	in := group(t).groups("web:2", "web:3")
	for _, c := range []struct{ revision, role, image, err string }{
		{"web-2", "leader", "web:2", ""},
		{"web-2", "worker", "web:3", ""},
		{"web-1", "worker", "web:1", ""},
		{"web-9", "worker", "", "is not stored"},
		{"web-2", "observer", "", "has no template"},
	} {
		template, err := in.Template(workload.Creation{Revision: c.revision, Member: workload.Member{Role: c.role}})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s of %s: %v", c.role, c.revision, err)
			}
			continue
		}
		if err != nil || template.Spec.Containers[0].Image != c.image {
			t.Errorf("%s of %s: %v, %v", c.role, c.revision, template, err)
		}
	}
	in.Current.Data = []byte("{")
	if _, err := in.Template(workload.Creation{Revision: "web-1"}); err == nil {
		t.Error("a revision that cannot be read has a template")
	}
}

// Revisions with templates in a list are resolved, stored and applied as those of a single template: what was stored
// with other fields and defaults is the same revision, and pods go in place from it to another one.
func TestLayout(t *testing.T) {
	s := group(t)
	in := s.groups("web:1", "web:1")
	in.Layout = &revision.Layout{
		Templates: []revision.Place{{Path: "spec.roles[name].template"}},
		Ignored:   []string{"spec.roles[name].replicas"},
	}
	in.Owner = workload.Owner{Reference: metav1.OwnerReference{Name: "web", UID: "web"}}
	data := func(image string) []byte {
		roles := map[string]*corev1.PodTemplateSpec{"leader": template("web:1"), "worker": template(image)}
		encoded, err := in.Layout.Encode(roles)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	stored := storedRevision(t, "web-1", "web:1", 1)
	stored.Data.Raw = []byte(strings.Replace(string(data("web:1")), `"name":"leader"`, `"name":"leader","replicas":3`, 1))
	history := workload.History{Data: data("web:1"), Stored: []*appsv1.ControllerRevision{stored}, Current: "web-1"}
	if err := in.SetHistory(history); err != nil || in.Update.Name != "web-1" {
		t.Fatalf("%s is the update revision, %v", in.Update.Name, err)
	}
	history.Data = data("web:2")
	if err := in.SetHistory(history); err != nil || in.Update.Name == "web-1" || in.Current.Name != "web-1" {
		t.Fatalf("%s is the update revision after %s, %v", in.Update.Name, in.Current.Name, err)
	}
	worker, err := in.Template(workload.Creation{Revision: in.Update.Name, Member: workload.Member{Role: "worker"}})
	if err != nil || worker.Spec.Containers[0].Image != "web:2" {
		t.Fatalf("%v, %v", worker, err)
	}
	pass := s.run(in)
	if err := workload.Err(pass.Failures()); err != nil {
		t.Fatal(err)
	}
	l, w := s.pods["l"].Spec.Containers[0].Image, s.pods["w1"].Spec.Containers[0].Image
	if !slices.Contains(s.sent, "Store "+in.Update.Name) || l != "web:1" || w != "web:2" {
		t.Errorf("the leader runs %s and a worker %s after %q", l, w, s.sent)
	}
}

// The update revision becomes the current one when all pods of all instances have it.
func TestPromote(t *testing.T) {
	s := group(t)
	in := s.groups("web:2", "web:3")
	in.Scale.Slots = []string{"g"}
	for _, updated := range []int{0, 1, 3} {
		for i, pod := range in.Instances[0].Pods {
			if i < updated {
				pod.Labels[kruise.PodRevisionLabelKey] = "web-2"
			}
		}
		pass, err := workload.Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		if name, promoted := pass.Promote("web-1"); promoted != (updated == 3) || promoted != (name == "web-2") {
			t.Errorf("%d of 3 pods are updated: %s, %t", updated, name, promoted)
		}
	}
}

// No revision is deleted that a pod has, also one that terminates, or that the pass goes from and to.
func TestTrim(t *testing.T) {
	s := three(t)
	s.pods["a"].Labels[kruise.PodRevisionLabelKey] = "web-3"
	s.pods["a"].DeletionTimestamp = &metav1.Time{Time: noon}
	var stored []*appsv1.ControllerRevision
	for i, name := range []string{"web-1", "web-2", "web-3", "web-4", "web-5", "web-6"} {
		stored = append(stored, storedRevision(t, name, name, int64(i)))
	}
	in := s.input()
	in.Instances = append(in.Instances, workload.Instance{Name: "none", Pods: []workload.Pod{{}}})
	pass, err := workload.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, w := range pass.Trim(stored, 1) {
		deleted = append(deleted, string(w.Verb)+" "+w.Object.GetName())
	}
	if want := []string{"Delete web-4", "Delete web-5"}; !slices.Equal(deleted, want) {
		t.Errorf("got %v, want %v", deleted, want)
	}
}

func TestGroups(t *testing.T) {
	pod := func(name, group, member string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"group": group, "member": member},
		}}
	}
	a, b, c := pod("a", "g", "leader"), pod("b", "h", "leader"), pod("c", "g", "worker")
	want := []workload.Instance{
		{Name: "g", Pods: []workload.Pod{{Pod: a, Member: "leader"}, {Pod: c, Member: "worker"}}},
		{Name: "h", Pods: []workload.Pod{{Pod: b, Member: "leader"}}},
	}
	if diff := cmp.Diff(want, workload.Groups([]*corev1.Pod{a, b, c}, "group", "member")); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

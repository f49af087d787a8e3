package subsets_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/revision"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// divided is an object of some subsets with its defaults.
func divided(names ...string) *v1beta1.UnitedDeployment {
	u := owner()
	u.Spec.Replicas = ptr.To[int32](4)
	for _, name := range names {
		u.Spec.Topology.Subsets = append(u.Spec.Topology.Subsets, v1beta1.Subset{Name: name})
	}
	u.Default()
	return u
}

func plan(
	t *testing.T, u *v1beta1.UnitedDeployment, workloads ...*unstructured.Unstructured,
) (*subsets.Snapshot, *subsets.Decision) {
	t.Helper()
	s, err := subsets.Read(u, noon())
	if err != nil {
		t.Fatal(err)
	}
	s.Add(s.Template.Kind, workloads)
	p, err := subsets.Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// workload is that of a subset as the last pass has written it, with so many ready pods.
func workload(t *testing.T, u *v1beta1.UnitedDeployment, subset string, ready int64) *unstructured.Unstructured {
	t.Helper()
	_, p := plan(t, u)
	for _, target := range p.Targets {
		if target.Subset.Name != subset {
			continue
		}
		o := target.Rendered.DeepCopy()
		o.SetUID("uid-" + o.GetUID())
		o.SetCreationTimestamp(metav1.NewTime(noon().Add(-time.Hour)))
		n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		o.Object["status"] = map[string]any{"replicas": n, "readyReplicas": ready, "updatedReplicas": n}
		return o
	}
	t.Fatalf("no subset %s", subset)
	return nil
}

// told is what a pass does.
func told(p *subsets.Decision) string {
	var parts []string
	for _, t := range p.Creates {
		parts = append(parts, "create "+t.Subset.Name)
	}
	for _, w := range p.Updates {
		parts = append(parts, "update "+w.Object.GetLabels()[kruise.SubSetNameLabelKey])
	}
	for _, c := range p.Deletes {
		parts = append(parts, fmt.Sprintf("delete %s of %s", c.Object.GetName(), c.Subset))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// A pass creates what is missing, writes what differs, and deletes what no subset has.
func TestPlan(t *testing.T) {
	u := divided("a", "b")
	a, b := workload(t, u, "a", 2), workload(t, u, "b", 2)
	named := func(o *unstructured.Unstructured, name string, ready int64) *unstructured.Unstructured {
		o = o.DeepCopy()
		o.SetName(name)
		o.Object["status"].(map[string]any)["readyReplicas"] = ready
		return o
	}
	changed := func(o *unstructured.Unstructured, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o = o.DeepCopy()
		change(o)
		return o
	}
	cases := map[string]struct {
		why   string
		names []string
		have  []*unstructured.Unstructured
		want  string
	}{
		"nothing is there": {"each subset gets a workload", []string{"a", "b"}, nil, "create a, create b"},
		"all is there": {
			why: "a snapshot at rest gives no writes", names: []string{"a", "b"}, have: []*unstructured.Unstructured{b, a},
		},
		"a subset is new": {
			why:   "the others give up replicas",
			names: []string{"a", "b", "c"},
			have:  []*unstructured.Unstructured{a, b},
			want:  "create c, update a",
		},
		"a subset is gone": {
			why:   "its workload has no subset",
			names: []string{"a"},
			have:  []*unstructured.Unstructured{a, b},
			want:  "delete " + b.GetName() + " of b, update a",
		},
		"two for one": {
			why:   "the one with fewer ready pods goes",
			names: []string{"a", "b"},
			have:  []*unstructured.Unstructured{named(a, "web-a-2", 1), a, b},
			want:  "delete web-a-2 of a",
		},
		"of another owner": {
			why:   "the reconciler adopts none",
			names: []string{"a", "b"},
			have:  []*unstructured.Unstructured{changed(a, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }), b},
			want:  "create a",
		},
		"without its labels": {
			why:   "the selector has the subset",
			names: []string{"a", "b"},
			have:  []*unstructured.Unstructured{changed(a, func(o *unstructured.Unstructured) { o.SetLabels(nil) }), b},
			want:  "update a",
		},
		"with labels of others": {
			why:   "they stay",
			names: []string{"a", "b"},
			have: []*unstructured.Unstructured{
				changed(a, func(o *unstructured.Unstructured) { o.SetLabels(with(o.GetLabels(), "team", "shop")) }), b,
			},
		},
		"it is being deleted": {
			why:   "the next one comes when it is gone",
			names: []string{"a", "b"},
			have: []*unstructured.Unstructured{changed(a, func(o *unstructured.Unstructured) {
				o.SetDeletionTimestamp(&metav1.Time{Time: noon()})
			}), b},
		},
		"it was scaled": {
			why:   "the topology decides",
			names: []string{"a", "b"},
			have: []*unstructured.Unstructured{changed(a, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, int64(9), "spec", "replicas")
			}), b},
			want: "update a",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := divided(c.names...)
			before := u.DeepCopy()
			s, p := plan(t, u, c.have...)
			if got := told(p); got != c.want {
				t.Errorf("%s: got %q, want %q", c.why, got, c.want)
			}
			if len(p.Store.Next()) == 0 {
				t.Error("no revision")
			}
			status := s.Status(p, subsets.Outcome{})
			if len(status.SubsetStatuses) != len(c.names) || status.UpdatedRevision != p.Update {
				t.Errorf("status %+v", status)
			}
			if diff := cmp.Diff(before, u); diff != "" {
				t.Errorf("the object changed:\n%s", diff)
			}
		})
	}
}

func with(labels map[string]string, key, value string) map[string]string {
	labels[key] = value
	return labels
}

// The status has what failed, and counts one more collision where the name of the revision is taken.
func TestStatusAfterFailures(t *testing.T) {
	u := divided("a", "b")
	u.Generation = 7
	s, p := plan(t, u)
	cases := map[string]struct {
		outcome    subsets.Outcome
		want       string
		collisions int32
	}{
		"nothing":    {subsets.Outcome{}, "SubsetProvisioned=True SubsetUpdated=True", 0},
		"a creation": {subsets.Outcome{Provision: errors.New("no quota")}, "SubsetProvisioned=False SubsetUpdated=True", 0},
		"an update":  {subsets.Outcome{Update: errors.New("no")}, "SubsetProvisioned=True SubsetUpdated=False", 0},
		"the spec": {
			subsets.Outcome{Fault: errors.New("no")}, "SubsetFailure=True SubsetProvisioned=True SubsetUpdated=True", 0,
		},
		"a taken name": {
			subsets.Outcome{Revise: &revision.TakenError{Name: "web-1"}}, "SubsetProvisioned=False SubsetUpdated=True", 1,
		},
		"no revision": {subsets.Outcome{Revise: errors.New("no")}, "SubsetProvisioned=False SubsetUpdated=True", 0},
		"several": {
			subsets.Outcome{Provision: errors.New("a"), Update: errors.New("b"), Fault: errors.New("c")},
			"SubsetFailure=True SubsetProvisioned=False SubsetUpdated=False", 0,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status := s.Status(p, c.outcome)
			var all []string
			for _, condition := range status.Conditions {
				if condition.Type != v1beta1.UnitedDeploymentUpdated {
					all = append(all, fmt.Sprintf("%s=%s", condition.Type, condition.Status))
				}
			}
			slices.Sort(all)
			if got := strings.Join(all, " "); got != c.want || ptr.Deref(status.CollisionCount, 0) != c.collisions ||
				status.ObservedGeneration != 7 {
				t.Errorf("conditions %s, collisions %v, generation %d", got, status.CollisionCount, status.ObservedGeneration)
			}
		})
	}
	if status := s.Status(nil, subsets.Outcome{Revise: errors.New("no")}); status.ObservedGeneration != 7 ||
		len(status.Conditions) != 2 {
		t.Errorf("without a pass: %+v", status)
	}
	if status := s.Unusable(errors.New("no")); status.ObservedGeneration != 7 ||
		status.Conditions[0].Type != v1beta1.SubsetFailure {
		t.Errorf("unusable: %+v", status)
	}
}

// A spec with which nothing can be done has an error, and one with other faults a pass and a note.
func TestRead(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.UnitedDeployment){
		"no selector":  func(u *v1beta1.UnitedDeployment) { u.Spec.Selector = nil },
		"no template":  func(u *v1beta1.UnitedDeployment) { u.Spec.Template = v1beta1.SubsetTemplate{} },
		"a name twice": func(u *v1beta1.UnitedDeployment) { u.Spec.Topology.Subsets[1].Name = "a" },
	} {
		u := divided("a", "b")
		change(u)
		if _, err := subsets.Read(u, noon()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	u := divided("a", "b")
	u.Spec.Topology.Subsets[0].Patch.Raw = []byte(`{"spec":{"containers":"x"}}`)
	_, p := plan(t, u)
	if err := p.Fault(); err == nil || !strings.HasPrefix(err.Error(), "a: ") || told(p) != "create b" {
		t.Errorf("fault %v, pass %s", err, told(p))
	}
}

// What a cache keeps of the workloads of others is enough to leave them alone.
func TestLean(t *testing.T) {
	u := divided("a", "b")
	a, b := workload(t, u, "a", 2), workload(t, u, "b", 2)
	kept := a.DeepCopy()
	subsets.Lean(kept)
	if diff := cmp.Diff(a, kept); diff != "" {
		t.Errorf("a workload of a UnitedDeployment changed:\n%s", diff)
	}
	other := a.DeepCopy()
	other.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "example.com/v1", Kind: "Rollout", UID: "r", Controller: ptr.To(true),
	}})
	subsets.Lean(other)
	if other.Object["spec"] != nil || other.GetLabels()[kruise.SubSetNameLabelKey] != "" ||
		other.GetName() != a.GetName() || len(other.GetOwnerReferences()) != 1 {
		t.Errorf("kept %v", other.Object)
	}
	if _, p := plan(t, u, a, b, other); told(p) != "" {
		t.Errorf("the pass: %s", told(p))
	}
	broken := &unstructured.Unstructured{Object: map[string]any{"metadata": "x"}}
	subsets.Lean(broken)
}

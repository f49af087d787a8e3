package resourcedistribution

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

func at(second int) time.Time { return time.Date(2030, 1, 1, 0, 0, second, 0, time.UTC) }

// seen is a snapshot of namespaces that are all targets, without copies.
func seen(t testing.TB, namespaces ...string) *snapshot {
	t.Helper()
	s := &snapshot{object: owner(secret), resource: built(t, secret), copies: map[string]*metadata{}, now: at(0)}
	s.target(t, v1beta1.ResourceDistributionTargets{AllNamespaces: true})
	for _, name := range namespaces {
		s.namespaces = append(s.namespaces, metadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return s
}

func (s *snapshot) target(t testing.TB, spec v1beta1.ResourceDistributionTargets) {
	t.Helper()
	var err error
	if s.targets, err = distribution.Select(spec, "reserved"); err != nil {
		t.Fatal(err)
	}
}

// copied is a copy in the cache.
func copied(version string) *metadata {
	return &metadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "pull", UID: "1", ResourceVersion: version,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner(""), gvk())},
	}}
}

// What is planned for one namespace, and what is known of it.
func TestOneNamespace(t *testing.T) {
	hash := built(t, secret).hash
	none := v1beta1.ResourceDistributionTargets{}
	for name, c := range map[string]struct {
		change func(*snapshot)
		known  known
		want   action
		fails  conditionType
	}{
		"missing":       {change: func(s *snapshot) { clear(s.copies) }, want: actionCreate},
		"not read yet":  {want: actionCompare},
		"right":         {known: known{version: "2", hash: hash}},
		"changed":       {known: known{version: "1", hash: hash}, want: actionCompare},
		"an older hash": {known: known{version: "2", hash: "older"}, want: actionCompare},
		"contested":     {known: known{version: "1", hash: hash, repaired: at(0)}},
		"contested, and a new resource": {
			known: known{hash: "older", repaired: at(0)}, want: actionCompare,
		},
		"contested a while ago": {known: known{hash: hash, repaired: at(-2)}, want: actionCompare},
		"foreign": {
			change: func(s *snapshot) { s.copies["shop"].OwnerReferences[0].UID = "former" },
			fails:  v1beta1.ResourceDistributionConflictOccurred,
		},
		"held by a finalizer": {
			change: func(s *snapshot) { s.copies["shop"].DeletionTimestamp = ptr.To(metav1.Now()) },
			fails:  v1beta1.ResourceDistributionUpdateResourceFailed,
		},
		"no namespace": {
			change: func(s *snapshot) {
				s.namespaces = nil
				s.target(t, v1beta1.ResourceDistributionTargets{
					IncludedNamespaces: v1beta1.ResourceDistributionTargetNamespaces{
						List: []v1beta1.ResourceDistributionNamespace{{Name: "shop"}},
					},
				})
			},
			fails: v1beta1.ResourceDistributionNamespaceNotExists,
		},
		"a terminating namespace": {
			change: func(s *snapshot) { s.namespaces[0].DeletionTimestamp = ptr.To(metav1.Now()) },
		},
		"no target": {change: func(s *snapshot) { s.target(t, none) }, want: actionDelete},
		"no target, foreign": {
			change: func(s *snapshot) { s.target(t, none); s.copies["shop"].OwnerReferences = nil },
		},
		"no target, deleting": {
			change: func(s *snapshot) { s.target(t, none); s.copies["shop"].DeletionTimestamp = ptr.To(metav1.Now()) },
		},
		"reserved": {
			change: func(s *snapshot) {
				s.namespaces[0].Name, s.copies["reserved"] = "reserved", s.copies["shop"]
				delete(s.copies, "shop")
			},
		},
		"reserved, and not selected": {
			change: func(s *snapshot) {
				s.target(t, none)
				s.namespaces[0].Name, s.copies["reserved"] = "reserved", s.copies["shop"]
			},
			want: actionDelete,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(t, "shop")
			s.copies["shop"], s.known = copied("2"), map[string]known{"shop": c.known}
			if c.change != nil {
				c.change(s)
			}
			p := newPlan(s)
			var got action
			for _, task := range p.tasks {
				got += task.action
			}
			var fails conditionType
			for _, f := range p.failures {
				fails += f.condition
			}
			if got != c.want || fails != c.fails {
				t.Errorf("plans %q, want %q; fails with %q, want %q", got, c.want, fails, c.fails)
			}
			if (p.requeueAfter > 0) != (name == "contested") {
				t.Errorf("again after %s", p.requeueAfter)
			}
		})
	}
}

// Namespaces that failed come last, whatever their names. Those that were not tried have failed, too, and keep their
// place.
func TestFailedLast(t *testing.T) {
	s := seen(t, "c", "b", "a")
	p := newPlan(s)
	p.end(p.tasks[0], nil, false, p.tasks[0].failed(apierrors.NewInternalError(errors.New("webhook"))))
	p.end(p.tasks[1], copied("2"), true, nil)
	if got := p.status(); got.Succeeded != 1 || got.Failed != 2 || p.err() == nil {
		t.Errorf("the status is %+v", got)
	}
	s.known = p.remembered()
	var order []string
	for _, task := range newPlan(s).tasks {
		order = append(order, task.namespace)
	}
	if diff := cmp.Diff([]string{"b", "c", "a"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A condition keeps its time while its status stays, wherever it stands in the old status.
func TestConditionTimes(t *testing.T) {
	s := seen(t, "shop")
	s.now, s.object.Generation = at(9), 7
	s.object.Status.Conditions = []v1beta1.ResourceDistributionCondition{
		{Type: "CreateResourceFailed", Status: "True", LastTransitionTime: metav1.NewTime(at(1)), Reason: "other"},
		{Type: "ConflictOccurred", Status: "True", LastTransitionTime: metav1.NewTime(at(2))},
		{Type: "GetResourceFailed", Status: "False", LastTransitionTime: metav1.NewTime(at(3))},
	}
	p := newPlan(s) // and nothing is tried
	got := p.status()
	if got.ObservedGeneration != 7 || got.Desired != 1 || got.Succeeded != 0 || got.Failed != 1 {
		t.Errorf("the status is %+v", got)
	}
	for i, want := range []int{3, 1, 9, 9, 9, 9} {
		if c := got.Conditions[i]; !c.LastTransitionTime.Time.Equal(at(want)) ||
			(c.Status == "False") != (c.Reason == "Succeeded") {
			t.Errorf("the condition is %+v, want second %d", c, want)
		}
	}
	s.object.Status = got
	if again := p.status(); !equality.Semantic.DeepEqual(got, again) {
		t.Errorf("the same status is written: %+v", again)
	}
}

// Texts and names are bounded.
func TestStatusIsBounded(t *testing.T) {
	var names []string
	for i := range 3000 {
		names = append(names, fmt.Sprintf("ns-%04d", i))
	}
	p := newPlan(seen(t, names...))
	for _, task := range p.tasks {
		err := apierrors.NewInternalError(errors.New(task.namespace + " %s %d " + strings.Repeat("ü", 5000)))
		p.end(task, nil, false, task.failed(err))
	}
	status := p.status()
	c := status.Conditions[1]
	if c.Type != "CreateResourceFailed" || len(c.FailedNamespaces) != maxNames || len(c.Reason) > 3200 ||
		!strings.HasSuffix(c.Reason, "; and 2997 more") || status.Failed != 3000 {
		t.Errorf("%d failed, %d names, reason %q", status.Failed, len(c.FailedNamespaces), c.Reason)
	}
	if err := p.err(); err == nil || !strings.Contains(err.Error(), "of 3000 that failed") {
		t.Errorf("the error is %v", err)
	}
}

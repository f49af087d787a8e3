package podstate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

// asker is a StatefulSet with annotations: auto, required, preferred, annotations, release.
func asker(values ...string) *podstate.Asker {
	a := &podstate.Asker{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "db", UID: "uid", Annotations: map[string]string{},
	}}
	a.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	keys := []string{
		v1beta1.AnnotationAutoGeneratePersistentPodState, v1beta1.AnnotationRequiredPersistentTopology,
		v1beta1.AnnotationPreferredPersistentTopology, v1beta1.AnnotationPersistentPodAnnotations,
		v1beta1.AnnotationReleaseMissingTopologyAfter,
	}
	for i, value := range values {
		a.Annotations[keys[i]] = value
	}
	return a
}

func TestGenerate(t *testing.T) {
	asks := asker("true", "zone, host,,zone", "rack", " a ,b")
	made := podstate.Generate([]*podstate.Asker{asks}, nil)
	want := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	want.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "uid", Controller: ptr.To(true),
	}}
	want.Spec = v1beta1.PersistentPodStateSpec{
		TargetReference:            v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"},
		RequiredPersistentTopology: &v1beta1.NodeTopologyTerm{Keys: []string{"zone", "host"}},
		PreferredPersistentTopology: []v1beta1.PreferredTopologyTerm{{
			Weight: 100, Preference: v1beta1.NodeTopologyTerm{Keys: []string{"rack"}},
		}},
		PersistentPodAnnotations: []v1beta1.PersistentPodAnnotation{{Key: "a"}, {Key: "b"}},
	}
	if diff := cmp.Diff(podstate.Generation{Action: podstate.Create, State: want, Asker: asks}, made); diff != "" {
		t.Fatalf("generated (-want +got):\n%s", diff)
	}
	stored := func(change func(*podstate.State)) *podstate.State {
		s := want.DeepCopy()
		change(s)
		return s
	}
	same := func(*podstate.State) {}
	users := func(s *podstate.State) { s.OwnerReferences = nil }
	released := annotated(v1beta1.AnnotationReleaseMissingTopologyAfter, "10m")
	releases := asker("true", "zone,host", "rack", "a,b", "10m")
	terminating := asks.DeepCopy()
	terminating.DeletionTimestamp = &metav1.Time{Time: now}
	advanced := asks.DeepCopy()
	advanced.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("StatefulSet"))
	advanced.UID = "other"
	for sentence, c := range map[string]struct {
		asker  *podstate.Asker
		stored *podstate.State
		want   podstate.Action
	}{
		"without the annotation nothing is created":    {asker("", "zone"), nil, podstate.Nothing},
		"another value than true asks for nothing":     {asker("True", "zone"), nil, podstate.Nothing},
		"without a topology nothing is created":        {asker("true", " , ", ""), nil, podstate.Nothing},
		"a terminating workload gets nothing":          {terminating, nil, podstate.Nothing},
		"what is as it should be stays":                {asks, stored(same), podstate.Nothing},
		"the version of the target does not matter":    {asks, stored(targets("apps/v1beta2")), podstate.Nothing},
		"another group is in the way":                  {asks, stored(targets("example.com/v1")), podstate.Occupied},
		"the policy stays":                             {asks, stored(policy("WhenDeleted")), podstate.Nothing},
		"the spec follows the required keys":           {asker("true", "zone", "rack", "a,b"), stored(same), podstate.Update},
		"the keys of annotations count":                {asker("true", "zone,host", "rack"), stored(same), podstate.Update},
		"the release follows":                          {releases, stored(same), podstate.Update},
		"the release of the workload is there":         {releases, stored(released), podstate.Nothing},
		"a release that the workload lacks is dropped": {asks, stored(released), podstate.Update},
		"what is turned off is deleted":                {asker("false", "zone"), stored(same), podstate.Delete},
		"what lost its topology is deleted":            {asker("true", ""), stored(same), podstate.Delete},
		"what lost its annotation is deleted":          {asker(), stored(same), podstate.Delete},
		"garbage collection deletes":                   {terminating, stored(same), podstate.Nothing},
		"a user's object stays":                        {asks, stored(users), podstate.Occupied},
		"a user's object stays when it is turned off":  {asker("false"), stored(users), podstate.Nothing},
		"without a workload nothing is to be done":     {nil, stored(same), podstate.Nothing},
	} {
		t.Run(sentence, func(t *testing.T) {
			var askers []*podstate.Asker
			if c.asker != nil {
				askers = append(askers, c.asker)
			}
			before := c.stored.DeepCopy()
			got := podstate.Generate(askers, c.stored)
			if got.Action != c.want {
				t.Errorf("got %q", got.Action)
			}
			if diff := cmp.Diff(before, c.stored); diff != "" {
				t.Errorf("the input changed (-was +is):\n%s", diff)
			}
			if got.Action == podstate.Update && podstate.Generate(askers, got.State).Action != podstate.Nothing {
				t.Error("the update is followed by another")
			}
		})
	}
	both := []*podstate.Asker{advanced, asks}
	if first, next := podstate.Generate(both, nil), podstate.Generate(both, want); first.Asker != asks ||
		next.Action != podstate.Nothing {
		t.Errorf("of two workloads %s gets it, and then %q", first.Asker.APIVersion, next.Action)
	}
}

// FuzzGenerate: whatever the annotations say, keys are clean, and what is generated is not written again.
func FuzzGenerate(f *testing.F) {
	f.Add("true", "zone, host", ",", "a,a", "5m")
	f.Add("false", "", "rack", " ", "-1h")
	f.Fuzz(func(t *testing.T, auto, required, preferred, annotations, after string) {
		a := asker(auto, required, preferred, annotations, after)
		g := podstate.Generate([]*podstate.Asker{a}, nil)
		if g.Action == podstate.Nothing {
			return
		}
		keys := []string{}
		if r := g.State.Spec.RequiredPersistentTopology; r != nil {
			keys = append(keys, r.Keys...)
		}
		for _, p := range g.State.Spec.PreferredPersistentTopology {
			keys = append(keys, p.Preference.Keys...)
		}
		if auto != "true" || len(keys) == 0 || slices.ContainsFunc(keys, func(k string) bool {
			return k == "" || strings.TrimSpace(k) != k || strings.Contains(k, ",")
		}) {
			t.Errorf("auto %q, keys %q", auto, keys)
		}
		if again := podstate.Generate([]*podstate.Asker{a}, g.State); again.Action != podstate.Nothing {
			t.Errorf("then %s", again.Action)
		}
		if d, err := podstate.ReleaseAfter(g.State); d != nil && (err != nil || *d < 0) {
			t.Errorf("released after %s, %v", d, err)
		}
	})
}

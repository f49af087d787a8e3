package podstate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

// asker is a StatefulSet with annotations: auto, required, preferred, annotations.
func asker(values ...string) podstate.Asker {
	a := podstate.Asker{Kind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Metadata: metav1.ObjectMeta{
		Namespace: "default", Name: "db", UID: "uid", Annotations: map[string]string{},
	}}
	keys := []string{
		v1beta1.AnnotationAutoGeneratePersistentPodState, v1beta1.AnnotationRequiredPersistentTopology,
		v1beta1.AnnotationPreferredPersistentTopology, v1beta1.AnnotationPersistentPodAnnotations,
	}
	for i, value := range values {
		a.Metadata.Annotations[keys[i]] = value
	}
	return a
}

func TestGenerate(t *testing.T) {
	asks := asker("true", "zone, host,,zone", "rack", " a ,b")
	made := podstate.Generate([]podstate.Asker{asks}, nil)
	controller := true
	want := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	want.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "uid", Controller: &controller,
	}}
	want.Spec = v1beta1.PersistentPodStateSpec{
		TargetReference:            v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"},
		RequiredPersistentTopology: &v1beta1.NodeTopologyTerm{Keys: []string{"zone", "host"}},
		PreferredPersistentTopology: []v1beta1.PreferredTopologyTerm{{
			Weight: 100, Preference: v1beta1.NodeTopologyTerm{Keys: []string{"rack"}},
		}},
		PersistentPodAnnotations: []v1beta1.PersistentPodAnnotation{{Key: "a"}, {Key: "b"}},
	}
	if diff := cmp.Diff(podstate.Generation{Action: podstate.Create, State: want}, made); diff != "" {
		t.Errorf("generated (-want +got):\n%s", diff)
	}
	generated := func(change ...func(*podstate.State)) *podstate.State {
		s := made.State.DeepCopy()
		for _, c := range change {
			c(s)
		}
		return s
	}
	users := func(s *podstate.State) { s.OwnerReferences = nil }
	leaving := asks
	leaving.Metadata.DeletionTimestamp = &metav1.Time{Time: now}
	advanced := asks
	advanced.Kind = v1beta1.GroupVersion.WithKind("StatefulSet")
	advanced.Metadata.UID = "other"
	releases := asker("true", "zone, host", "rack", "a,b")
	releases.Metadata.Annotations[v1beta1.AnnotationReleaseMissingTopologyAfter] = "10m"
	released := func(after string) func(*podstate.State) {
		return func(s *podstate.State) {
			s.Annotations = map[string]string{v1beta1.AnnotationReleaseMissingTopologyAfter: after}
		}
	}
	for name, c := range map[string]struct {
		why    string
		askers []podstate.Asker
		stored *podstate.State
		want   podstate.Action
	}{
		"not asked": {
			why:    "nothing is created",
			askers: []podstate.Asker{asker("", "zone"), asker("True", "zone")},
			want:   podstate.Nothing,
		},
		"no topology":        {"nothing is created", []podstate.Asker{asker("true", " , ", "")}, nil, podstate.Nothing},
		"a leaving workload": {"nothing is created", []podstate.Asker{leaving}, nil, podstate.Nothing},
		"the same":           {"nothing is written", []podstate.Asker{asks}, generated(), podstate.Nothing},
		"an older version": {
			why:    "the reference wrote the version that it knew",
			askers: []podstate.Asker{asks},
			stored: generated(func(s *podstate.State) { s.Spec.TargetReference.APIVersion = "apps/v1beta2" }),
			want:   podstate.Nothing,
		},
		"a retention": {
			why:    "what the annotations do not say stays",
			askers: []podstate.Asker{asks},
			stored: generated(func(s *podstate.State) { s.Spec.PersistentPodStateRetentionPolicy = "WhenDeleted" }),
			want:   podstate.Nothing,
		},
		"another annotation": {
			why:    "the spec follows",
			askers: []podstate.Asker{asker("true", "zone", "rack", "a,b")},
			stored: generated(),
			want:   podstate.Update,
		},
		"other pods' keys": {
			why:    "the spec follows these, too",
			askers: []podstate.Asker{asker("true", "zone,host", "rack", "a")},
			stored: generated(),
			want:   podstate.Update,
		},
		"a release": {"the annotation follows", []podstate.Asker{releases}, generated(), podstate.Update},
		"a release no more": {
			why:    "the annotation goes with that of the workload",
			askers: []podstate.Asker{asks},
			stored: generated(released("10m")),
			want:   podstate.Update,
		},
		"the same release": {
			why:    "nothing is written",
			askers: []podstate.Asker{releases},
			stored: generated(released("10m")),
			want:   podstate.Nothing,
		},
		"turned off": {
			why:    "the object is deleted",
			askers: []podstate.Asker{asker("false", "zone")},
			stored: generated(),
			want:   podstate.Delete,
		},
		"no topology any more": {"the object is deleted", []podstate.Asker{asker("true", "")}, generated(), podstate.Delete},
		"no annotation":        {"the object is deleted", []podstate.Asker{asker()}, generated(), podstate.Delete},
		"leaving": {
			why:    "garbage collection deletes the object",
			askers: []podstate.Asker{leaving},
			stored: generated(),
			want:   podstate.Nothing,
		},
		"a user's":             {"it stays as it is", []podstate.Asker{asks}, generated(users), podstate.Occupied},
		"a user's, turned off": {"it stays", []podstate.Asker{asker("false")}, generated(users), podstate.Nothing},
		"two kinds": {
			why:    "that of the one that exists",
			askers: []podstate.Asker{advanced, asks},
			stored: generated(),
			want:   podstate.Nothing,
		},
		"no workload": {"nothing", nil, generated(), podstate.Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.stored.DeepCopy()
			got := podstate.Generate(c.askers, c.stored)
			if got.Action != c.want {
				t.Errorf("%s: %q", c.why, got.Action)
			}
			if diff := cmp.Diff(before, c.stored); diff != "" {
				t.Errorf("the input changed (-was +is):\n%s", diff)
			}
			if got.Action == podstate.Update && podstate.Generate(c.askers, got.State).Action != podstate.Nothing {
				t.Error("the update is followed by another")
			}
		})
	}
	if first := podstate.Generate([]podstate.Asker{advanced, asks},
		nil).State; first.OwnerReferences[0].APIVersion != "apps/v1" {
		t.Errorf("of two workloads %s gets it", first.OwnerReferences[0].APIVersion)
	}
}

// FuzzGenerate: whatever the annotations say, keys are clean, and what is generated is not written again.
func FuzzGenerate(f *testing.F) {
	f.Add("true", "zone, host", ",", "a,a", "5m")
	f.Add("false", "", "rack", " ", "-1h")
	f.Fuzz(func(t *testing.T, auto, required, preferred, annotations, after string) {
		a := asker(auto, required, preferred, annotations)
		a.Metadata.Annotations[v1beta1.AnnotationReleaseMissingTopologyAfter] = after
		g := podstate.Generate([]podstate.Asker{a}, nil)
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
		if again := podstate.Generate([]podstate.Asker{a}, g.State); again.Action != podstate.Nothing {
			t.Errorf("then %s", again.Action)
		}
		if d, is, err := podstate.ReleaseAfter(g.State); is && (err != nil || d < 0) {
			t.Errorf("released after %s, %v", d, err)
		}
	})
}

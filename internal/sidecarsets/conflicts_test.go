package sidecarsets_test

import (
	"errors"
	"flag"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

var seed = flag.Int64("seed", 1, "the first of the random cases")

func drawSelector(r *rand.Rand) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
		metav1.LabelSelectorOpDoesNotExist,
	}
	for range 1 + r.Intn(2) {
		e := metav1.LabelSelectorRequirement{Key: []string{"a", "b"}[r.Intn(2)], Operator: operators[r.Intn(4)]}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = []string{[]string{"x", "y"}[r.Intn(2)]}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

func drawSet(r *rand.Rand, name string) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = drawSelector(r)
	if r.Intn(2) == 0 {
		set.Spec.NamespaceSelector = drawSelector(r)
	}
	c := v1beta1.SidecarContainer{Container: corev1.Container{Name: []string{"c", "c-1", "d"}[r.Intn(3)]}}
	if r.Intn(2) == 0 {
		c.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{
			UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "e",
		}
	}
	if r.Intn(3) == 0 {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		set.Spec.InitContainers = []v1beta1.SidecarContainer{c}
	} else {
		set.Spec.Containers = []v1beta1.SidecarContainer{c}
	}
	return set
}

// TestConflictsAreClashes tries all pods of a small universe: two sets that are let in never clash in a pod, and two
// that are not can meet in one.
func TestConflictsAreClashes(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	refused, met := 0, 0
	for i := range int64(3000) {
		r := rand.New(rand.NewSource(*seed + i))
		a, b := drawSet(r, "a"), drawSet(r, "b")
		conflict := len(sidecarsets.Conflicts(a, []*v1beta1.SidecarSet{b})) > 0
		if other := len(sidecarsets.Conflicts(b, []*v1beta1.SidecarSet{a})) > 0; conflict != other {
			t.Fatalf("-seed=%d: it depends on which comes first", *seed+i)
		}
		meet, clash := meetings(t, a, b)
		switch {
		case clash && !conflict:
			t.Fatalf("-seed=%d: both are let in, and clash in a pod", *seed+i)
		case conflict && !meet:
			t.Fatalf("-seed=%d: refused, though no pod can have both", *seed+i)
		case conflict:
			refused++
		case meet:
			met++
		}
	}
	if refused < 200 || met < 200 {
		t.Errorf("the cases are too tame: %d refused, %d meet without", refused, met)
	}
}

// meetings tells whether a pod gets both sets, and whether it can then not be created.
func meetings(t *testing.T, a, b *v1beta1.SidecarSet) (meet, clash bool) {
	t.Helper()
	var sets []*sidecar.Set
	for _, object := range []*v1beta1.SidecarSet{a, b} {
		set, err := sidecar.Parse(object)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	values := []string{"", "x", "y", "z"}
	labels := func(n int) map[string]string {
		all := map[string]string{}
		for i, key := range []string{"a", "b"} {
			if value := values[n>>(2*i)&3]; value != "" {
				all[key] = value
			}
		}
		return all
	}
	for i := range 16 {
		for j := range 16 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels(i)}}
			selection, err := sidecar.Select(pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: labels(j)}}, sets)
			if err != nil {
				t.Fatal(err)
			}
			if len(selection.Sets) < 2 {
				continue
			}
			if _, err = sidecar.Inject(pod, selection.Sets, sidecar.Options{Now: time.Unix(0, 0)}); err != nil &&
				!errors.Is(err, sidecar.ErrClash) {
				t.Fatal(err)
			}
			return true, err != nil // what clashes in one pod clashes in all
		}
	}
	return false, false
}

func TestSidecarSetConflicts(t *testing.T) {
	write := func(policy, key string) string {
		return `{"containers":[{"name":"b"}],"patchPodMetadata":[{"patchPolicy":"` + policy + `","annotations":{"x":"1","` +
			key + `":"2"}}]}`
	}
	cases := map[string]struct {
		why, set, other string
		want            []string
	}{
		"a name": {"a pod has it once", `{}`, `{}`, []string{"spec.containers[0].name: Invalid value"}},
		"the same pair": {
			why:   "what pods record goes by the name",
			set:   `{"containers":[{"name":"agent","upgradeStrategy":{"upgradeType":"HotUpgrade"}}]}`,
			other: `{}`,
			want:  []string{"spec.containers[0].name: Invalid value"},
		},
		"another volume": {
			why:   "of the same name",
			set:   `{"volumes":[{"name":"v","emptyDir":{}}]}`,
			other: `{"containers":[{"name":"b"}],"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}]}`,
			want:  []string{"spec.volumes[0]: Invalid value"},
		},
		"two that overwrite": {
			why:   "which one counts?",
			set:   write("Overwrite", "k"),
			other: strings.Replace(write("MergePatchJson", "k"), `"b"`, `"c"`, 1),
			want: []string{
				"spec.patchPodMetadata[0].annotations[k]: Invalid value", "spec.patchPodMetadata[0].annotations[x]: Invalid value",
			},
		},
		"one that retains": {
			why: "it gives way", set: write("Overwrite", "k"), other: strings.Replace(write("Retain", "k"), `"b"`, `"c"`, 1),
		},
		"two that merge": {
			why:   "both come in",
			set:   write("MergePatchJson", "k"),
			other: strings.Replace(write("MergePatchJson", "k"), `"b"`, `"c"`, 1),
		},
		"one that selects no pod": {"they never meet", `{}`, `{"selector":{"matchLabels":null}}`, nil},
		"one that is broken": {
			why:   "it is reported elsewhere",
			set:   `{}`,
			other: `{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}}`,
		},
		"broken namespaces": {
			why:   "it is reported elsewhere",
			set:   `{}`,
			other: `{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set, other := newSidecarSet(t, c.set), newSidecarSet(t, c.other)
			other.Name = "other"
			got := sidecarsets.Conflicts(set, []*v1beta1.SidecarSet{set, other})
			if diff := cmp.Diff(c.want, validationtest.Places(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if back := sidecarsets.Conflicts(other,
				[]*v1beta1.SidecarSet{set, other}); (len(got) == 0) != (len(back) == 0) {
				t.Errorf("seen from the other side it differs: %v, %v", got, back)
			}
			for _, canary := range []*v1beta1.SidecarSet{set, other} {
				canary.Annotations = map[string]string{
					v1beta1.SidecarSetCanaryAnnotation: "true",
					v1beta1.SidecarSetBaseAnnotation:   map[string]string{"a": "other", "other": "a"}[canary.Name],
				}
				if got := sidecarsets.Conflicts(set, []*v1beta1.SidecarSet{other}); len(got) > 0 {
					t.Errorf("a canary and its base: %v", got)
				}
				canary.Annotations = nil
			}
		})
	}
}

package pod_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// Of all sets, put and deleted at random, a pod gets as candidates those that select its labels, each once.
func TestCandidates(t *testing.T) {
	for seed := range uint64(100) {
		d := rand.New(rand.NewPCG(seed, 2))
		index, there := pod.NewIndex(), map[string]*appsv1beta1.SidecarSet{}
		for range 60 {
			name := fmt.Sprintf("set-%d", d.IntN(20))
			if d.IntN(4) == 0 {
				index.Delete(name)
				delete(there, name)
				continue
			}
			set := randomSet(d, name)
			if err := index.Put(set); err != nil {
				t.Fatal(err)
			}
			there[name] = set
		}
		for range 20 {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: randomLabels(d)}}
			var want, got []string
			for name, set := range there {
				if selects, _ := sidecar.MatchesPod(set, p); selects {
					want = append(want, name)
				}
			}
			for _, set := range index.Candidates(p.Labels) {
				got = append(got, set.Name())
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Fatalf("seed %d: %v select %v, and the candidates are %v", seed, want, p.Labels, got)
			}
		}
	}
}

func one[T any](d *rand.Rand, of ...T) T { return of[d.IntN(len(of))] }

func randomLabels(d *rand.Rand) map[string]string {
	l := map[string]string{}
	for _, k := range []string{"app", "tier"} {
		if d.IntN(3) > 0 {
			l[k] = one(d, "a", "b", "c")
		}
	}
	return l
}

func randomSet(d *rand.Rand, name string) *appsv1beta1.SidecarSet {
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = randomSelector(d, []string{"app", "tier"}, []string{"a", "b", "c"})
	return set
}

func randomSelector(d *rand.Rand, keys, values []string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if d.IntN(2) == 0 {
		s.MatchLabels = map[string]string{one(d, keys...): one(d, values...)}
	}
	for range d.IntN(3) {
		e := metav1.LabelSelectorRequirement{
			Key: one(d, keys...),
			Operator: one(d, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
				metav1.LabelSelectorOpDoesNotExist),
		}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = []string{one(d, values...), one(d, values...)}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

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

// Of all sets, put and taken out at random, a pod is shown every one that selects it, and each once.
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
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one(d, "one", "two", "three")}}
			namespace.Labels = map[string]string{corev1.LabelMetadataName: namespace.Name, "env": one(d, "prod", "test")}
			var want, got []string
			for name, set := range there {
				inPod, _ := sidecar.MatchesPod(set, p)
				if inNamespace, _ := sidecar.MatchesNamespace(set, namespace); inPod && inNamespace {
					want = append(want, name)
				}
			}
			for _, set := range index.Candidates(namespace.Name, p.Labels) {
				got = append(got, set.Name())
			}
			slices.Sort(want)
			slices.Sort(got)
			for i, name := range got {
				if i > 0 && got[i-1] == name {
					t.Fatalf("seed %d: %s comes twice", seed, name)
				}
			}
			for _, name := range want {
				if !slices.Contains(got, name) {
					t.Fatalf("seed %d: %s selects %v in %s, and is not shown", seed, name, p.Labels, namespace.Name)
				}
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
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: d.Int64()}}
	set.Spec.Selector = randomSelector(d, []string{"app", "tier"}, []string{"a", "b", "c"})
	if d.IntN(2) == 0 {
		set.Spec.NamespaceSelector = randomSelector(d, []string{"env", corev1.LabelMetadataName},
			[]string{"prod", "test", "one", "two"})
	}
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

// A pod is not shown what has nothing to do with it: the cost grows with what is near.
func TestFewCandidates(t *testing.T) {
	index := pod.NewIndex()
	for i := range 1000 {
		_ = index.Put(newSet(t, fmt.Sprintf("s%d", i),
			fmt.Sprintf(`{selector: {matchLabels: {app: app-%d}, matchExpressions: [{key: tier, operator: Exists}, {key: zone, operator: In, values: [y, z]}]}}`,
				i)))
	}
	if n := len(index.Candidates("one", map[string]string{"app": "app-7", "tier": "front", "zone": "z"})); n != 1 {
		t.Errorf("%d candidates, want the one", n)
	}
}

// A set whose status alone changed is the one that it was.
func TestStatus(t *testing.T) {
	set := newSet(t, "a", logs)
	index := indexOf(set)
	before := index.Candidates("one", map[string]string{"app": "web"})[0]
	again := set.DeepCopy()
	again.Status.MatchedPods = 7
	_ = index.Put(again)
	if index.Candidates("one", map[string]string{"app": "web"})[0] != before {
		t.Error("it was read again for a number of pods")
	}
	again = again.DeepCopy()
	again.Status.LatestRevision = "other"
	_ = index.Put(again)
	if index.Candidates("one", map[string]string{"app": "web"})[0] == before {
		t.Error("a new revision, which pods record, was overlooked")
	}
}

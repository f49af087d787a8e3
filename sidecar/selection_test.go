package sidecar_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

func selects(selector *metav1.LabelSelector) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.Selector = selector }
}

func inNamespace(selector *metav1.LabelSelector) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.NamespaceSelector = selector }
}

// withLabels and withExpression are selectors.
func withLabels(keysAndValues ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: pairs(keysAndValues...)}
}

func withExpression(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: key, Operator: operator, Values: values,
	}}}
}

func TestSelect(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: pairs("team", "blue")}}
	cases := map[string]struct {
		why       string
		pod       func(*corev1.Pod)
		namespace *corev1.Namespace
		sets      []*v1beta1.SidecarSet
		want      []string
		notes     []string
	}{
		"by labels": {
			why: "a set takes the pods that its selector selects, in all namespaces", namespace: shop,
			sets: []*v1beta1.SidecarSet{sidecarSet("b"), sidecarSet("other", selects(withLabels("app", "y"))), sidecarSet("a")},
			want: []string{"a", "b"},
		},
		"empty selectors": {
			why: "a selector that says nothing selects nothing", namespace: shop,
			sets: []*v1beta1.SidecarSet{sidecarSet("a", selects(nil)), sidecarSet("b", selects(&metav1.LabelSelector{}))},
		},
		"by namespace": {
			why: "the labels of the namespace count", namespace: shop,
			sets: []*v1beta1.SidecarSet{
				sidecarSet("a", inNamespace(withLabels("team", "blue"))), sidecarSet("b", inNamespace(withLabels("team", "red"))),
			},
			want: []string{"a"},
		},
		"an unknown namespace": {
			why: "what cannot be known is left out, and said of those sets that would have the pod",
			sets: []*v1beta1.SidecarSet{
				sidecarSet("a", inNamespace(withLabels("team", "blue"))), sidecarSet("b"),
				sidecarSet("c", selects(withLabels("app", "y")), inNamespace(withLabels("team", "blue"))),
			},
			want: []string{"b"}, notes: []string{"NamespaceUnknown a"},
		},
		"a namespace made by hand": {
			why:       "API servers label each with its name",
			namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
			sets: []*v1beta1.SidecarSet{
				sidecarSet("a", inNamespace(withLabels(corev1.LabelMetadataName, "shop"))),
				sidecarSet("b", inNamespace(withLabels(corev1.LabelMetadataName, "other"))),
			},
			want: []string{"a"},
		},
		"paused": {
			why: "the pod is reported, if the set would match", namespace: shop,
			sets: []*v1beta1.SidecarSet{
				sidecarSet("a", pausedInjection), sidecarSet("b", pausedInjection, selects(withLabels("app", "y"))),
			},
			notes: []string{"InjectionPaused a"},
		},
		"paused and broken": {
			why: "a set that takes no part does no harm", namespace: shop,
			sets: []*v1beta1.SidecarSet{sidecarSet("a", pausedInjection, selects(withExpression("a", "Odd")))},
		},
		"a canary": {
			why: "it takes the place of its base", namespace: shop,
			sets: []*v1beta1.SidecarSet{sidecarSet("base"), sidecarSet("canary", canaryOf("base")), sidecarSet("x")},
			want: []string{"canary", "x"}, notes: []string{"HiddenByCanary base"},
		},
		"a paused canary": {
			why: "it hides nothing", namespace: shop,
			sets: []*v1beta1.SidecarSet{sidecarSet("base"), sidecarSet("canary", canaryOf("base"), pausedInjection)},
			want: []string{"base"}, notes: []string{"InjectionPaused canary"},
		},
		"a canary of other pods": {
			why: "the base stays where the canary does not match", namespace: shop,
			sets: []*v1beta1.SidecarSet{
				sidecarSet("base"), sidecarSet("canary", canaryOf("base"), selects(withLabels("app", "y"))),
			},
			want: []string{"base"},
		},
		"no canary": {
			why: "only the value true makes one, and none is its own", namespace: shop,
			sets: []*v1beta1.SidecarSet{
				sidecarSet("base"), sidecarSet("self", canaryOf("self")),
				sidecarSet("yes", annotated(v1beta1.SidecarSetCanaryAnnotation, "yes", v1beta1.SidecarSetBaseAnnotation, "base")),
			},
			want: []string{"base", "self", "yes"},
		},
		"a pod that failed": {
			why: "it is over", pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
			sets: []*v1beta1.SidecarSet{sidecarSet("a")}, notes: []string{"PodInactive "},
		},
		"a pod that is deleted": {
			why: "it goes", pod: func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon().Add(time.Second))) },
			sets: []*v1beta1.SidecarSet{sidecarSet("a")}, notes: []string{"PodInactive "},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(own("main"))
			if c.pod != nil {
				c.pod(pod)
			}
			for range 2 {
				got, err := sidecar.Select(pod, c.namespace, parse(c.sets...))
				if err != nil {
					t.Fatal(err)
				}
				var have []string
				for _, set := range got.Sets {
					have = append(have, set.Name())
				}
				if !slices.Equal(c.want, have) || !slices.Equal(c.notes, codes(got.Notes)) {
					t.Errorf("%s: want %v and %v, got %v and %v", c.why, c.want, c.notes, have, got.Notes)
				}
				slices.Reverse(c.sets)
			}
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	cases := map[string]struct {
		set  *v1beta1.SidecarSet
		want string
	}{
		"selector": {
			set:  sidecarSet("a", selects(withExpression("k", "Odd"))),
			want: `sidecarset a: spec.selector: "Odd" is not a valid label selector operator`,
		},
		"namespaceSelector": {
			set:  sidecarSet("a", inNamespace(withExpression("k", "Odd"))),
			want: `sidecarset a: spec.namespaceSelector: "Odd" is not a valid label selector operator`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := sidecar.Select(podOf(), &corev1.Namespace{}, parse(sidecarSet("b"), c.set))
			if err == nil || err.Error() != c.want {
				t.Errorf("want %s, got %v", c.want, err)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	const name = corev1.LabelMetadataName
	cases := map[string]struct {
		why      string
		selector *metav1.LabelSelector
		want     []string
	}{
		"none":   {why: "it is for all namespaces"},
		"labels": {why: "any namespace can have them", selector: withLabels("team", "blue")},
		"a name": {why: "that one", selector: withLabels(name, "shop"), want: []string{"shop"}},
		"names": {
			why:      "one of them, each said once",
			selector: withExpression(name, metav1.LabelSelectorOpIn, "b", "a", "b"),
			want:     []string{"a", "b"},
		},
		"not a name": {why: "the others cannot be listed", selector: withExpression(name, metav1.LabelSelectorOpNotIn, "a")},
		"no names": {
			why: "the set is broken, which has to be seen", selector: withExpression(name, metav1.LabelSelectorOpIn),
		},
		"both": {
			why: "the label says more than the expression",
			selector: &metav1.LabelSelector{
				MatchLabels:      pairs(name, "a"),
				MatchExpressions: withExpression(name, metav1.LabelSelectorOpIn, "a", "b").MatchExpressions,
			},
			want: []string{"a"},
		},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(c.want, sidecar.Namespaces(sidecarSet("a", inNamespace(c.selector)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

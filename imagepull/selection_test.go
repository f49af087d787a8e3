package imagepull_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

func five() (nodes []*v1beta1.NodeImage) {
	for _, meta := range []metav1.ObjectMeta{
		{Name: "n5", Labels: map[string]string{"zone": "b"}},
		{Name: "n1", Labels: map[string]string{"zone": "a", "gpu": ""}},
		{Name: "n3"},
		{Name: "n2", Labels: map[string]string{"zone": "a"}},
		{Name: "n4"},
	} {
		nodes = append(nodes, &v1beta1.NodeImage{ObjectMeta: meta})
	}
	return nodes
}

func onNodes(s *v1beta1.ImagePullJobNodeSelector) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.Selector = s }
}

func withPods(labels map[string]string, terms ...metav1.LabelSelectorRequirement) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) {
		j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{
			MatchLabels: labels, MatchExpressions: terms,
		}}
	}
}

func runs(node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}}}
	p.Spec.NodeName = node
	for _, c := range change {
		c(p)
	}
	return p
}

func TestSelect(t *testing.T) {
	inPhase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	pods := []*corev1.Pod{
		runs("n4"), runs("n2"), runs("n4"), runs(""), runs("gone"),
		runs("n1", func(p *corev1.Pod) { p.Namespace = "other" }),
		runs("n1", func(p *corev1.Pod) { p.Labels = nil }),
		runs("n3", inPhase(corev1.PodSucceeded)), runs("n3", inPhase(corev1.PodFailed)),
		runs("n3", func(p *corev1.Pod) { p.DeletionTimestamp = ago(0) }),
		runs("n5", inPhase(corev1.PodPending)),
	}
	for name, test := range map[string]struct {
		change []func(*v1beta1.ImagePullJob)
		want   string
	}{
		"no selector":       {nil, "n1 n2 n3 n4 n5"},
		"an empty selector": {list(onNodes(&v1beta1.ImagePullJobNodeSelector{})), "n1 n2 n3 n4 n5"},
		"names": {
			list(onNodes(&v1beta1.ImagePullJobNodeSelector{Names: []string{"n4", "n2", "n4", "gone"}})), "n2 n4",
		},
		"no names": {list(onNodes(&v1beta1.ImagePullJobNodeSelector{Names: []string{}})), ""},
		"labels": {
			list(onNodes(&v1beta1.ImagePullJobNodeSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
			})),
			"n1 n2",
		},
		"labels that are not there": {
			list(onNodes(&v1beta1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpDoesNotExist}},
			}})), "n3 n4",
		},
		"pods, in their order": {list(withPods(map[string]string{"app": "web"})), "n4 n2 n5"},
		"pods count more": {
			list(withPods(map[string]string{"app": "web"}), onNodes(&v1beta1.ImagePullJobNodeSelector{Names: []string{"n1"}})),
			"n4 n2 n5",
		},
		"every pod": {list(withPods(nil)), "n4 n2 n1 n5"},
		"no pod":    {list(withPods(map[string]string{"app": "db"})), ""},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, err := imagepull.Select(pullJob("a", "nginx", test.change...), five(), pods)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range nodes {
				got = append(got, n.Name)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	bad := metav1.LabelSelectorRequirement{Key: "zone", Operator: "Near"}
	for want, change := range map[string]func(*v1beta1.ImagePullJob){
		"spec.podSelector: ": withPods(nil, bad),
		"spec.selector: ": onNodes(&v1beta1.ImagePullJobNodeSelector{
			LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{bad}},
		}),
	} {
		if got, err := imagepull.Select(pullJob("a", "nginx", change), five(), nil); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, %v, want %s", got, err, want)
		}
	}
}

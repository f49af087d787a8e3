package imagepull_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/note"
)

func byPods(j *v1beta1.ImagePullJob) {
	j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
}

func TestInterests(t *testing.T) {
	secrets := func(names ...string) func(*v1beta1.ImagePullJob) {
		return func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = names }
	}
	selector := func(s v1beta1.ImagePullJobNodeSelector) func(*v1beta1.ImagePullJob) {
		return func(j *v1beta1.ImagePullJob) { j.Spec.Selector = &s }
	}
	cases := map[string]struct {
		change []func(*v1beta1.ImagePullJob)
		copies string
		want   []string
	}{
		"all nodes":      {nil, "", []string{"nodes"}},
		"nodes by label": {list(selector(v1beta1.ImagePullJobNodeSelector{})), "", []string{"labels"}},
		"nodes by name": {
			list(selector(v1beta1.ImagePullJobNodeSelector{Names: []string{"a", "b"}})),
			"",
			[]string{"node:a", "node:b"},
		},
		"nodes by their pods": {list(byPods), "", []string{"pods:shop"}},
		"secrets to be copied": {
			list(secrets("x", "y")),
			"",
			[]string{"nodes", "secret:shop/x", "secret:shop/y", "secrets"},
		},
		"secrets where nodes read": {list(secrets("x")), "shop", []string{"nodes"}},
		"it has ended":             {list(completed(time.Second)), "", nil},
		"it is being deleted":      {list(func(j *v1beta1.ImagePullJob) { j.DeletionTimestamp = ago(0) }), "", nil},
		"it cannot run":            {list(func(j *v1beta1.ImagePullJob) { j.Spec.Image = "No:Image:" }), "", nil},
		"it has too many secrets":  {list(secrets(make([]string, imagepull.MaxPullSecrets+1)...)), "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			job := pullJob("web", "nginx:1")
			for _, change := range c.change {
				change(job)
			}
			if diff := cmp.Diff(c.want, imagepull.Interests(job, c.copies)); diff != "" {
				t.Errorf("interests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodChanges(t *testing.T) {
	pod := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: "n"},
		}
		for _, c := range change {
			c(p)
		}
		return p
	}
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeName = "m" }
	unbound := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web", "x": "y"} }
	relabelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }
	rule, err := imagepull.NewRule(pullJob("web", "nginx", byPods))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		another       bool
	}{
		"created":                {nil, pod(), true},
		"created, unbound":       {nil, pod(unbound), false},
		"deleted":                {pod(), nil, true},
		"deleted after it ended": {pod(ended), nil, false},
		"bound":                  {pod(unbound), pod(), true},
		"it runs":                {pod(), pod(), false},
		"it ends":                {pod(), pod(ended), true},
		"another label":          {pod(), pod(labelled), false},
		"no longer selected":     {pod(), pod(relabelled), true},
		"of others":              {nil, pod(relabelled), false},
		"on another node":        {pod(), pod(elsewhere), true},
	} {
		if got := rule.SelectsAnother(c.before, c.after); got != c.another {
			t.Errorf("%s: another node is selected: %t", name, got)
		}
	}
}

func TestNewRule(t *testing.T) {
	byNodes := func(s metav1.LabelSelector) func(*v1beta1.ImagePullJob) {
		return func(j *v1beta1.ImagePullJob) { j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: s} }
	}
	gpu := byNodes(metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}})
	for name, c := range map[string]struct {
		change []func(*v1beta1.ImagePullJob)
		labels map[string]string
		want   bool
	}{
		"no selector":               {nil, nil, true},
		"an empty selector":         {list(byNodes(metav1.LabelSelector{})), nil, true},
		"a node":                    {list(gpu), map[string]string{"gpu": "yes"}, true},
		"another node":              {list(gpu), nil, false},
		"a pod":                     {list(byPods), map[string]string{"app": "web"}, true},
		"pods come before nodes":    {list(gpu, byPods), map[string]string{"gpu": "yes"}, false},
		"a pod of another workload": {list(byPods), map[string]string{"app": "db"}, false},
	} {
		rule, err := imagepull.NewRule(pullJob("web", "nginx", c.change...))
		if err != nil || rule.Matches(c.labels) != c.want {
			t.Errorf("%s: matches: %t, %v", name, !c.want, err)
		}
	}
	malformed := byNodes(metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
	})
	if rule, err := imagepull.NewRule(pullJob("web", "nginx", malformed)); err == nil {
		t.Errorf("a selector that cannot be read is the rule %v", rule)
	}
}

func TestNeedsUser(t *testing.T) {
	for code, want := range map[string]bool{
		imagepull.NoteRefused: true, imagepull.NoteNoSecret: true, imagepull.NoteBadSecret: true,
		imagepull.NoteLimited: false, imagepull.NoteFull: false,
	} {
		if got := imagepull.NeedsUser(note.Note{Code: code}); got != want {
			t.Errorf("%s: %t, want %t", code, got, want)
		}
	}
}

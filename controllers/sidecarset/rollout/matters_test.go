package rollout_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

func TestMatters(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: kind, Status: status, Message: message}}
		}
	}
	for name, c := range map[string]struct {
		why    string
		before func(*corev1.Pod)
		change func(*corev1.Pod)
		want   bool
	}{
		"a heartbeat": {
			why: "nothing of it is looked at", change: func(p *corev1.Pod) { p.Status.HostIP = "10.0.0.1" },
		},
		"a record": {
			why:    "another one may have written it",
			change: func(p *corev1.Pod) { p.Annotations = map[string]string{kruise.SidecarSetHashKey: "{}"} },
			want:   true,
		},
		"readiness": {why: "it is counted", change: condition(corev1.PodReady, "True", ""), want: true},
		"its condition": {
			why:    "another set may have undone it",
			before: condition(kruise.SidecarSetUpgradable, "True", `{"a":true}`),
			change: condition(kruise.SidecarSetUpgradable, "True", `{"b":true}`),
			want:   true,
		},
		"an image": {
			why: "it may run now", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "x" }, want: true,
		},
		"a container": {
			why:    "it is another one",
			change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "x" },
			want:   true,
		},
		"a ready container": {
			why: "a hot upgrade may end", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = true }, want: true,
		},
		"a label": {
			why: "it may be another's now", change: func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} }, want: true,
		},
		"a deletion": {
			why: "it is not counted", change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, want: true,
		},
		"its end": {
			why: "it is not counted", change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, want: true,
		},
		"the spec": {
			why: "somebody wrote it", change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "x" }, want: true,
		},
		"another pod": {
			why: "nobody saw the first one go", change: func(p *corev1.Pod) { p.UID = "other" }, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", ResourceVersion: "1"}}
			before.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
			before.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
			if c.before != nil {
				c.before(before)
			}
			after := before.DeepCopy()
			c.change(after)
			if rollout.Matters(before, after) {
				t.Error("a resync says nothing")
			}
			after.ResourceVersion = "2"
			if got := rollout.Matters(before, after); got != c.want {
				t.Errorf("%s: got %t", c.why, got)
			}
		})
	}
}

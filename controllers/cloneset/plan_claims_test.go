package cloneset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// Which claims are created, used again, handed over and deleted.
func TestPlanClaims(t *testing.T) {
	claimed := func(s *v1beta1.CloneSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	reused := both(claimed, func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.EnablePVCReuse = true })
	checkPlans(t, map[string]planCase{
		"new pod": {
			why:      "its claim is created first",
			replicas: 1,
			set:      claimed,
			want:     []string{"create claim data-web-new-a", "create web-new-a of web:1"},
		},
		"claim without a pod": {
			why:      "one new pod takes its id, the other a new one",
			replicas: 3,
			set:      reused,
			pods:     several(1, "web:1"),
			claims:   []string{"a", "z"},
			want:     []string{"create claim data-web-new-a", "create web-z of web:1", "create web-new-a of web:1"},
		},
		"claim without a pod, no reuse": {
			why: "it is deleted", replicas: 1, set: claimed, pods: several(1, "web:1"), claims: []string{"a", "z"},
			want: []string{"delete claim data-web-z"},
		},
		"deleted pods": {
			why: "their claims are deleted with them, the others stay", replicas: 1, set: both(claimed, named("web-a", "web-c")),
			pods: several(3, "web:1"), claims: []string{"a", "b", "c"},
			want: []string{"patch claim data-web-a", "patch claim data-web-c", "delete web-a", "delete web-c"},
		},
		"deleted pod, reuse": {
			why: "no other pod gets its claim", replicas: 1, set: both(reused, named("web-a")),
			pods: several(2, "web:1"), claims: []string{"a", "b"}, want: []string{"patch claim data-web-a", "delete web-a"},
		},
		"deleted pod, held": {
			why: "its claim is its own until the hook lets the pod go", replicas: 1,
			set:  both(holdsDeletion, reused, named("web-a")),
			pods: several(2, "web:1", held), claims: []string{"a", "b"}, want: []string{"move web-a to PreparingDelete"},
		},
		"released pod": {
			why: "a user takes the pod out of the set to look at it: its claim goes with it", replicas: 1, set: claimed,
			pods:   append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Label("app", "quarantine"))),
			claims: []string{"a", "b"}, want: []string{"patch claim data-web-b"},
		},
		"released pod, reuse": {
			why: "no other pod gets the volume that it uses", replicas: 1, set: reused,
			pods:   append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Label("app", "quarantine"))),
			claims: []string{"a", "b"}, want: []string{"patch claim data-web-b"},
		},
		"released pod, then": {
			why: "its claims are its own: it follows", replicas: 1, set: claimed, claims: []string{"a"},
			pods: append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Label("app", "quarantine"))),
			want: []string{"patch web-b"},
		},
		"id label removed": {
			why: "the name of the pod has the id, too", replicas: 1, set: claimed, claims: []string{"a"},
			pods: several(1, "web:1", podtest.Label(kruise.CloneSetInstanceIDKey, "")), want: []string{},
		},
		"terminating pod, reuse": {
			why: "its claim waits for it", replicas: 1, set: reused, claims: []string{"a"},
			pods: several(1, "web:1", podtest.Terminating(time.Second), podtest.Finalizer("example.com/stay")), want: []string{},
		},
		"pod that terminates for long, reuse": {
			why: "the set does not wait for ever, and creates another pod", replicas: 1, set: reused, claims: []string{"a"},
			pods: several(1, "web:1", podtest.Terminating(time.Hour), podtest.Finalizer("example.com/stay")),
			want: []string{"create claim data-web-new-a", "create web-new-a of web:1"},
		},
		"terminating pod, no reuse": {
			why: "the pod becomes the owner of its claim", replicas: 1, set: claimed, claims: []string{"a"},
			pods: several(1, "web:1", podtest.Terminating(time.Second), podtest.Finalizer("example.com/stay")),
			want: []string{"patch claim data-web-a", "create claim data-web-new-a", "create web-new-a of web:1"},
		},
		"finished pod": {
			why: "it is deleted and replaced", replicas: 2, set: claimed, claims: []string{"a", "b"},
			pods: append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Phase(corev1.PodFailed))),
			want: []string{"patch claim data-web-b", "delete web-b", "create claim data-web-new-a", "create web-new-a of web:1"},
		},
		"finished pod, held": {
			why: "the owner of the preDelete hook sees that the pod is to be deleted", replicas: 1, set: holdsDeletion,
			pods: append(several(1, "web:1"), podtest.New("web-b", "web:1", held, podtest.Phase(corev1.PodFailed))),
			want: []string{"move web-b to PreparingDelete"},
		},
		"finished pod, chosen, reuse": {
			why:      "its claim goes with the pod, and no other pod gets it",
			replicas: 1, set: both(reused, named("web-b")),
			pods:   append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Phase(corev1.PodFailed))),
			claims: []string{"a", "b"}, want: []string{"patch claim data-web-b", "delete web-b"},
		},
		"finished pod, reuse": {
			why: "its replacement waits for its claim", replicas: 2, set: reused, claims: []string{"a", "b"},
			pods: append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Phase(corev1.PodFailed))),
			want: []string{"delete web-b"},
		},
	})
}

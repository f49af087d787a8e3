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
		"new pod: its claim is created first": {
			replicas: 1, set: claimed, want: "create claim data-web-new-a, create web-new-a of web:1",
		},
		"claim without a pod: one new pod takes its id, the other a new one": {
			replicas: 3,
			set:      reused,
			pods:     parse("a:1"),
			claims:   []string{"a", "z"},
			want:     "create claim data-web-new-a, create web-z of web:1, create web-new-a of web:1",
		},
		"claim without a pod, no reuse: it is deleted": {
			replicas: 1, set: claimed, pods: parse("a:1"), claims: []string{"a", "z"}, want: "delete claim data-web-z",
		},
		"deleted pods: their claims are deleted with them, the others stay": {
			replicas: 1,
			set:      both(claimed, named("web-a", "web-c")),
			pods:     parse("a:1 b:1 c:1"),
			claims:   []string{"a", "b", "c"},
			want:     "patch claim data-web-a, patch claim data-web-c, delete web-a, delete web-c",
		},
		"deleted pod, reuse: no other pod gets its claim": {
			replicas: 1,
			set:      both(reused, named("web-a")),
			pods:     parse("a:1 b:1"),
			claims:   []string{"a", "b"},
			want:     "patch claim data-web-a, delete web-a",
		},
		"deleted pod, held: its claim is its own until the hook lets the pod go": {
			replicas: 1,
			set:      both(holdsDeletion, reused, named("web-a")),
			pods:     parse("a:1h b:1h"),
			claims:   []string{"a", "b"},
			want:     "move web-a to PreparingDelete",
		},
		"released pod: a user takes the pod out of the set to look at it: its claim goes with it": {
			replicas: 1,
			set:      claimed,
			pods:     append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Label("app", "quarantine"))),
			claims:   []string{"a", "b"},
			want:     "patch claim data-web-b",
		},
		"released pod, then: its claims are its own: it follows": {
			replicas: 1,
			set:      claimed,
			pods:     append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Label("app", "quarantine"))),
			claims:   []string{"a"},
			want:     "patch web-b",
		},
		"id label removed: the name of the pod has the id, too": {
			replicas: 1,
			set:      claimed,
			pods:     several(1, "web:1", podtest.Label(kruise.CloneSetInstanceIDKey, "")),
			claims:   []string{"a"},
		},
		"terminating pod, reuse: its claim waits for it": {
			replicas: 1,
			set:      reused,
			pods:     several(1, "web:1", podtest.Terminating(time.Second), podtest.Finalizer("example.com/stay")),
			claims:   []string{"a"},
		},
		"pod that terminates for long, reuse: the set does not wait for ever, and creates another pod": {
			replicas: 1,
			set:      reused,
			pods:     several(1, "web:1", podtest.Terminating(time.Hour), podtest.Finalizer("example.com/stay")),
			claims:   []string{"a"},
			want:     "create claim data-web-new-a, create web-new-a of web:1",
		},
		"terminating pod, no reuse: the pod becomes the owner of its claim": {
			replicas: 1,
			set:      claimed,
			pods:     several(1, "web:1", podtest.Terminating(time.Second), podtest.Finalizer("example.com/stay")),
			claims:   []string{"a"},
			want:     "patch claim data-web-a, create claim data-web-new-a, create web-new-a of web:1",
		},
		"finished pod: it is deleted and replaced": {
			replicas: 2,
			set:      claimed,
			pods:     parse("a:1 b:1!"),
			claims:   []string{"a", "b"},
			want:     "patch claim data-web-b, delete web-b, create claim data-web-new-a, create web-new-a of web:1",
		},
		"finished pod, chosen, reuse: its claim goes with the pod, and no other pod gets it": {
			replicas: 1,
			set:      both(reused, named("web-b")),
			pods:     parse("a:1 b:1!"),
			claims:   []string{"a", "b"},
			want:     "patch claim data-web-b, delete web-b",
		},
		"finished pod, reuse: its replacement waits for its claim": {
			replicas: 2, set: reused, pods: parse("a:1 b:1!"), claims: []string{"a", "b"}, want: "delete web-b",
		},
	})
}

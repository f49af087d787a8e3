package native

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubectl rollout undo gives the Deployment the annotations of the ReplicaSet that it goes back to. With the one that
// asks for rollouts in place the undo is in place, too. The hold of the rollout that has ended is not to come back.
func TestHistoryKeepsAnnotations(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	want := map[string]string{
		RolloutKey: "{}", "deployment.kubernetes.io/revision": "2", "kubernetes.io/change-cause": "set image",
	}
	active := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	active.Annotations = maps.Clone(want)
	active.Annotations[HoldKey] = "3"
	p := &DeploymentPlan{deployment: d, active: active}
	if diff := cmp.Diff(want, p.keep(&corev1.PodTemplateSpec{}).Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

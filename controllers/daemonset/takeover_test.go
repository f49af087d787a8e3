package daemonset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A set that OpenKruise has created or updated is continued without a write, and one that it is updating with the
// writes that are left.
func TestTakeover(t *testing.T) {
	for name, c := range map[string]struct {
		why, state, version string
		want                []string
	}{
		"created":           {"nothing is left to do", "1-created", "v1beta1", nil},
		"created, v1alpha1": {"references of the older version count", "1-created", "v1alpha1", nil},
		"updating": {
			why:     "the pods were recorded after the set: the status completes the rollout",
			state:   "2-updating",
			version: "v1beta1",
			want:    []string{"PATCH daemonsets/agent/status 200"},
		},
		"updated": {"nothing is left to do", "3-updated", "v1beta1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 0, daemonset.Options{})
			for _, o := range m.Recorded(c.state, c.version,
				&v1beta1.DaemonSetList{}, &corev1.PodList{}, &appsv1.ControllerRevisionList{}) {
				if pod, is := o.(*corev1.Pod); is && m.node(pod.Spec.NodeName).Name == "" {
					m.addNode(pod.Spec.NodeName)
				}
			}
			m.Server.Requests()
			m.Reconcile()
			m.Reconcile()
			if diff := cmp.Diff(c.want, m.Server.Requests()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

package broadcastjob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// Jobs that OpenKruise has begun or completed are continued: no pod is created or deleted, and a status is written only
// where pods have ended since it was recorded.
func TestTakeover(t *testing.T) {
	for name, c := range map[string]struct {
		why, state, version string
		want                []string
	}{
		"created":          {"both jobs have completed", "1-created", "v1beta1", nil},
		"created, v1alpha": {"references of the older version count", "1-created", "v1alpha1", nil},
		"updating":         {"the counters are those of the pods", "2-updating", "v1beta1", nil},
		"updated": {
			why:     "the pods of one job were recorded later, too",
			state:   "3-updated",
			version: "v1beta1",
			want:    []string{"PATCH broadcastjobs/tick-1795230060/status 200"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, "", broadcastjob.Options{})
			var jobs v1beta1.BroadcastJobList
			var pods corev1.PodList
			objects.Recorded(t, c.state+"/broadcastjobs.v1beta1.yaml", &jobs)
			objects.Recorded(t, c.state+"/pods.yaml", &pods)
			m.Clock = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
			nodes := map[string]bool{}
			for i := range jobs.Items {
				m.Put(&jobs.Items[i])
			}
			n := 0
			for i := range pods.Items {
				pod := &pods.Items[i]
				if ref := metav1.GetControllerOf(pod); ref == nil || ref.Kind != "BroadcastJob" {
					continue
				}
				pod.OwnerReferences[0].APIVersion = "apps.kruise.io/" + c.version
				if node := eligible.NodeOf(pod); !nodes[node] {
					nodes[node] = true
					m.addNode(node)
				}
				m.Put(pod)
				n++
			}
			if n < 6 || len(nodes) != 3 {
				t.Fatalf("%d recorded pods on %d nodes", n, len(nodes))
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

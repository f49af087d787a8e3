package workloadspread_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// TestOthers: a pod stays with the WorkloadSpread that its annotation names.
func TestOthers(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		change func(other *subset.Spread)
		want   bool
	}{
		"another kind of target": {"it may be above the other one", func(ws *subset.Spread) {
			ws.Spec.TargetReference.Kind = "Deployment"
		}, true},
		"the same target": {"both were created within moments", func(*subset.Spread) {}, true},
		"another target of the kind": {"it does not control the pod", func(ws *subset.Spread) {
			ws.Spec.TargetReference.Name = "web-2"
		}, false},
		"it does not select": {"its filter has changed", func(ws *subset.Spread) {
			ws.Spec.TargetFilter = &appsv1beta1.TargetFilter{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			}
		}, false},
		"it terminates": {"it is about to be gone", func(ws *subset.Spread) {
			ws.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			ws.Finalizers = []string{"example.com/keep"}
		}, false},
		"it is gone": {"the annotation is left", func(ws *subset.Spread) { ws.Name = "third" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			_, x := cluster.replica(workloadspread.Options{})
			own, other := spread("own", "ReplicaSet", -1), spread("other", "ReplicaSet", -1)
			c.change(other)
			for _, ws := range []*subset.Spread{own, other} {
				cluster.put(ws)
				cluster.show(x, ws.Name)
			}
			p := pod("p", "apps/v1", "ReplicaSet", "web")
			if x.Others(own, p) {
				t.Error("a pod without the annotation belongs to another one")
			}
			p.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": `{"name":"other","subset":"a"}`}
			if got := x.Others(own, p); got != c.want {
				t.Errorf("%s: got %t", c.why, got)
			}
		})
	}
}

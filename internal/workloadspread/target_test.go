package workloadspread_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
)

// TestUnwatched: a target is read again by time where events may not report a change of its replicas.
func TestUnwatched(t *testing.T) {
	for name, c := range map[string]struct {
		apiVersion, kind string
		paths            []string
		replicas         int32
		unwatched        bool
	}{
		"a Job changes its generation": {apiVersion: "batch/v1", kind: "Job", replicas: 3},
		"paths may be in a status": {
			apiVersion: "batch/v1",
			kind:       "Job",
			paths:      []string{"spec.parallelism", "status.active"},
			replicas:   5,
			unwatched:  true,
		},
		"a further kind is not watched": {
			apiVersion: "example.com/v1", kind: "Game", replicas: 7, unwatched: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			have := newCluster(t)
			have.put(&batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "uid-web"},
				Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](9)},
				Status:     batchv1.JobStatus{Active: 2},
			})
			have.put(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "uid-web"},
				Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](4)},
			})
			have.put(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Game", "metadata": map[string]any{"namespace": shop, "name": "web"},
				"spec": map[string]any{"players": int64(7)},
			}})
			have.put(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: kruise.DefaultNamespace, Name: kruise.ConfigurationName},
				Data: map[string]string{
					kruise.WorkloadSpreadWhiteListKey: `{"workloads":[{"Group":"example.com","Kind":"Game","replicasPath":"spec.players"}]}`,
				},
			})
			ws := spread("ws", c.kind, -1)
			ws.Spec.TargetReference.APIVersion = c.apiVersion
			if len(c.paths) > 0 {
				ws.Spec.TargetFilter = &appsv1beta1.TargetFilter{ReplicasPathList: c.paths}
			}
			finder := &replicas.Finder{Cached: have.Server, Live: have, Scales: have, Mapper: mapper(), Now: time.Now}
			targets := &workloadspread.Targets{
				Finder: finder, Live: have, Kinds: &workloadspread.Kinds{Live: have, Now: time.Now},
			}
			got, err := targets.Read(t.Context(), ws)
			if err != nil || got.Gone || got.Base.Replicas != c.replicas || got.Unwatched != c.unwatched {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

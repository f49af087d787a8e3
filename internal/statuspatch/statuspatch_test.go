package statuspatch_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/statuspatch"
)

func TestMerge(t *testing.T) {
	was := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: "7"}}
	was.Status.Replicas, was.Status.CollisionCount = 2, ptr.To[int32](1)
	cases := map[string]struct {
		change   func(*appsv1.DeploymentStatus)
		required map[string]any
		guard    statuspatch.Guard
		want     string // empty for no patch
	}{
		"the same needs no patch, whatever is required": {func(*appsv1.DeploymentStatus) {}, map[string]any{"replicas": 2}, statuspatch.SameVersion, ""},
		"only what differs is written": {
			func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 }, nil, statuspatch.Unguarded, `{"status":{"readyReplicas":1}}`,
		},
		"what is gone is removed": {
			func(s *appsv1.DeploymentStatus) { s.CollisionCount = nil }, nil, statuspatch.Unguarded, `{"status":{"collisionCount":null}}`,
		},
		"what is required is always written": {
			func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 },
			map[string]any{"replicas": 2, "readyReplicas": 1, "updatedReplicas": 0},
			statuspatch.Unguarded, `{"status":{"readyReplicas":1,"replicas":2,"updatedReplicas":0}}`,
		},
		"another object of the name is left alone": {
			func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 }, nil, statuspatch.SameObject, `{"metadata":{"uid":"u"},"status":{"readyReplicas":1}}`,
		},
		"another version is left alone": {
			func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 }, nil, statuspatch.SameVersion,
			`{"metadata":{"resourceVersion":"7"},"status":{"readyReplicas":1}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			is := was.DeepCopy()
			c.change(&is.Status)
			patch, err := statuspatch.Merge(was, is, c.required, c.guard)
			if err != nil {
				t.Fatal(err)
			}
			if patch == nil {
				if c.want != "" {
					t.Error("got no patch")
				}
				return
			}
			data, err := patch.Data(nil)
			if err != nil || string(data) != c.want || patch.Type() != types.MergePatchType {
				t.Errorf("got  %s, %v\nwant %s", data, err, c.want)
			}
		})
	}
}

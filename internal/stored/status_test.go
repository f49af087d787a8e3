package stored_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

func TestMerge(t *testing.T) {
	was := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: "7"}}
	was.Status.Replicas, was.Status.CollisionCount = 2, ptr.To[int32](1)
	cases := map[string]struct {
		change   func(*appsv1.DeploymentStatus)
		required map[string]any
		guard    stored.Guard
		want     string // empty for no patch
	}{
		"the same needs no patch, whatever is required": {
			change: func(*appsv1.DeploymentStatus) {}, required: map[string]any{"replicas": 2}, guard: stored.SameVersion,
		},
		"only what differs is written, to the object that was observed": {
			change: func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 },
			want:   `{"metadata":{"uid":"u"},"status":{"readyReplicas":1}}`,
		},
		"what is gone is removed": {
			change: func(s *appsv1.DeploymentStatus) { s.CollisionCount = nil },
			want:   `{"metadata":{"uid":"u"},"status":{"collisionCount":null}}`,
		},
		"what is required is always written": {
			func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 },
			map[string]any{"replicas": 2, "readyReplicas": 1, "updatedReplicas": 0},
			stored.SameObject, `{"metadata":{"uid":"u"},"status":{"readyReplicas":1,"replicas":2,"updatedReplicas":0}}`,
		},
		"another version is left alone": {
			func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 }, nil, stored.SameVersion,
			`{"metadata":{"resourceVersion":"7"},"status":{"readyReplicas":1}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			is := was.DeepCopy()
			c.change(&is.Status)
			patch, err := stored.MergeStatus(was, is, c.required, c.guard)
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

func TestWrite(t *testing.T) {
	kind := stored.Kind{GVK: appsv1.SchemeGroupVersion.WithKind("Deployment")}
	was := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web", UID: "u", ResourceVersion: "7"}}
	is := was.DeepCopy()
	for _, writeOf := range []func(stored.Kind, client.Object, client.Object, map[string]any) (*write.Write, error){
		stored.WriteStatus, stored.WriteStatusVersion,
	} {
		if w, err := writeOf(kind, was, was.DeepCopy(), nil); w != nil || err != nil {
			t.Errorf("wrote %v, %v for the same status", w, err)
		}
	}
	is.Status.Replicas = 1
	w, err := stored.WriteStatusVersion(kind, was, is, nil)
	if err != nil || w == nil {
		t.Fatalf("got %v, %v", w, err)
	}
	if data, err := w.Data(); err != nil || !strings.Contains(string(data), `"resourceVersion":"7"`) {
		t.Errorf("the version is not tested: %s, %v", data, err)
	}
}

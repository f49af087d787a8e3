package statuspatch_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
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
		"the same needs no patch, whatever is required": {
			change: func(*appsv1.DeploymentStatus) {}, required: map[string]any{"replicas": 2}, guard: statuspatch.SameVersion,
		},
		"only what differs is written": {
			change: func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 },
			guard:  statuspatch.Unguarded,
			want:   `{"status":{"readyReplicas":1}}`,
		},
		"what is gone is removed": {
			change: func(s *appsv1.DeploymentStatus) { s.CollisionCount = nil },
			guard:  statuspatch.Unguarded,
			want:   `{"status":{"collisionCount":null}}`,
		},
		"what is required is always written": {
			func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 },
			map[string]any{"replicas": 2, "readyReplicas": 1, "updatedReplicas": 0},
			statuspatch.Unguarded, `{"status":{"readyReplicas":1,"replicas":2,"updatedReplicas":0}}`,
		},
		"another object of the name is left alone": {
			change: func(s *appsv1.DeploymentStatus) { s.ReadyReplicas = 1 },
			guard:  statuspatch.SameObject,
			want:   `{"metadata":{"uid":"u"},"status":{"readyReplicas":1}}`,
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

func TestWrite(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, "web")
	cases := map[string]struct {
		err           error
		replicas      int32
		writes, known int
		fails         bool
	}{
		"a change":             {nil, 1, 1, 1, false},
		"none":                 {nil, 0, 0, 0, false},
		"the object is gone":   {missing, 1, 1, 0, false},
		"the write is refused": {apierrors.NewBadRequest("no"), 1, 1, 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind := stored.Kind{GVK: appsv1.SchemeGroupVersion.WithKind("Deployment")}
			was := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web", UID: "u", ResourceVersion: "7"}}
			is := was.DeepCopy()
			is.Status.Replicas = c.replicas
			written, failed := false, error(nil)
			pass, err := statuspatch.Pass(kind, was, is, nil, func(write.Object) { written = true })
			if pass != nil {
				pass.Answer(time.Time{}, pass.Next()[0], is, c.err)
				failed = pass.Err()
			}
			if err != nil || (pass != nil) != (c.writes == 1) || written != (c.known == 1) || (failed != nil) != c.fails {
				t.Errorf("%v, written %t, %v", err, written, failed)
			}
			w, err := statuspatch.WriteVersion(kind, was, is, nil)
			if err != nil || (w != nil) != (c.writes == 1) {
				t.Fatalf("got %v, %v", w, err)
			}
			if w == nil {
				return
			}
			if data, err := w.Data(); err != nil || !strings.Contains(string(data), `"resourceVersion":"7"`) {
				t.Errorf("the version is not tested: %s, %v", data, err)
			}
		})
	}
}

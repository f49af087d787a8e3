package pod_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// subsets answer with a name, or fail.
type subsets struct {
	name  string
	fault error
	// unsynced is why WorkloadSpreads cannot be read.
	unsynced error
	// asked is the namespace of the request, and its UID.
	asked types.NamespacedName
}

func (s *subsets) Ready(context.Context) error { return s.unsynced }

func (s *subsets) Admit(_ context.Context, request types.NamespacedName, _ *corev1.Pod) (*corev1.Pod, error) {
	s.asked = request
	if s.name == "" || s.fault != nil {
		return nil, s.fault
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, nil
}

// TestSpread: a pod gets its subset, and only a patch that cannot be applied rejects it.
func TestSpread(t *testing.T) {
	for name, c := range map[string]struct {
		why      string
		subsets  *subsets
		dry      bool
		want     string
		lacking  int
		rejected bool
		unasked  bool
	}{
		"a subset": {why: "the pod is as its subset wants it", subsets: &subsets{name: "a"}, want: "a"},
		"none":     {why: "a pod without a WorkloadSpread stays as it is", subsets: &subsets{}},
		"a failed lookup": {
			why: "the pod is created without a subset", subsets: &subsets{fault: errors.New("no cache")}, lacking: 1,
		},
		"no cache": {
			why:     "the subset is not known, and none is recorded",
			subsets: &subsets{name: "a", unsynced: context.DeadlineExceeded}, lacking: 1, unasked: true,
		},
		"a bad patch": {
			why:      "a retry cannot succeed",
			subsets:  &subsets{fault: &workloadspread.PatchError{Spread: "s", Err: errors.New("no list")}},
			rejected: true,
		},
		"a dry run": {why: "nothing is recorded", subsets: &subsets{name: "a"}, dry: true, unasked: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pod.Spread(c.subsets).Apply(t.Context(), pod.Request{
				Namespace: "shop", UID: "1", Pod: &corev1.Pod{}, DryRun: c.dry,
			})
			var invalid *pod.InvalidError
			if errors.As(err, &invalid) != c.rejected || !c.rejected && err != nil || got.Lacking != c.lacking ||
				len(got.Warnings) != c.lacking {
				t.Fatalf("%s: %+v, %v", c.why, got, err)
			}
			if (got.Pod != nil) != (c.want != "") || got.Pod != nil && got.Pod.Name != c.want {
				t.Errorf("%s: pod %+v", c.why, got.Pod)
			}
			if asked := c.subsets.asked; c.unasked != (asked.Namespace == "") || !c.unasked && asked.Name != "1" {
				t.Errorf("%s: asked %+v", c.why, asked)
			}
		})
	}
	if got, err := pod.Spread(nil).Apply(t.Context(), pod.Request{Pod: &corev1.Pod{}}); err != nil || got.Pod != nil {
		t.Errorf("without WorkloadSpreads: %+v, %v", got, err)
	}
}

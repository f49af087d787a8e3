package pod_test

import (
	"context"
	"errors"
	"strings"
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

func (s *subsets) Admit(
	_ context.Context, request types.NamespacedName, _ *corev1.Pod, _ func(context.Context, *corev1.Pod) error,
) (*corev1.Pod, error) {
	s.asked = request
	if s.name == "" || s.fault != nil {
		return nil, s.fault
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, nil
}

// recording gives pods subsets, one after the other for each review, and records the last one.
type recording struct {
	names    []string
	recorded string
}

func (*recording) Ready(context.Context) error { return nil }

func (s *recording) Admit(
	ctx context.Context, _ types.NamespacedName, created *corev1.Pod, review func(context.Context, *corev1.Pod) error,
) (next *corev1.Pod, err error) {
	for _, name := range s.names {
		next = created.DeepCopy()
		next.Labels = map[string]string{"subset": name}
		if err := review(ctx, next); err != nil {
			return nil, err
		}
	}
	s.recorded = next.Labels["subset"]
	return next, nil
}

// TestSpreadRecordsLast: a pod that a later step refuses leaves no record, and no step runs twice for one that is
// admitted.
func TestSpreadRecordsLast(t *testing.T) {
	refuse := errors.New("the pod is refused")
	for name, c := range map[string]struct {
		names []string
		// refused is the subset whose pods the last step refuses.
		refused        string
		recorded, want string
		runs           int
	}{
		"an admitted pod is recorded":        {names: []string{"a"}, recorded: "a", want: "a", runs: 1},
		"a refused pod is not":               {names: []string{"a"}, refused: "a", runs: 1},
		"the pod goes to another subset":     {names: []string{"a", "b"}, recorded: "b", want: "b", runs: 2},
		"where a later step then refuses it": {names: []string{"a", "b"}, refused: "b", runs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := &recording{names: c.names}, 0
			last := pod.Step{Name: "last", Apply: func(_ context.Context, r pod.Request) (pod.Result, error) {
				runs++
				if c.refused != "" && r.Pod.Labels["subset"] == c.refused {
					return pod.Result{}, &pod.InvalidError{Err: refuse}
				}
				next := r.Pod.DeepCopy()
				next.Annotations = map[string]string{"last": r.Pod.Labels["subset"]}
				return pod.Result{Pod: next, Warnings: []string{"last"}}, nil
			}}
			w, err := pod.New([]pod.Step{pod.Readiness(pod.ReadinessOptions{}), pod.Spread(s), last}, pod.Options{})
			if err != nil {
				t.Fatal(err)
			}
			req := request(t, "1", plain)
			answer := serveAt(t, w, pod.Path, req)
			if answer.Allowed != (c.want != "") || s.recorded != c.recorded || runs != c.runs {
				t.Fatalf("allowed %t, recorded %q, the last step ran %d times", answer.Allowed, s.recorded, runs)
			}
			if !answer.Allowed {
				if !strings.Contains(answer.Result.Message, "step last: the pod is refused") || answer.Result.Code != 422 {
					t.Errorf("refused with %+v", answer.Result)
				}
				return
			}
			got := decode(t, patched(t, req, answer))
			if got.Labels["subset"] != c.want || got.Annotations["last"] != c.want || len(answer.Warnings) != 1 {
				t.Errorf("labels %v, annotations %v, warnings %q", got.Labels, got.Annotations, answer.Warnings)
			}
		})
	}
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

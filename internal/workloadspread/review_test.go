package workloadspread_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// TestReview: a pod is reviewed as its subset makes it, and recorded after that. One that is refused leaves no record.
func TestReview(t *testing.T) {
	errRefused := errors.New("refused")
	half := func(ws *subset.Spread) { ws.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromString("50%")) }
	for name, c := range map[string]struct {
		change func(*subset.Spread)
		// between happens while the first review is under way.
		between func(s *cluster, d *workloadspread.Allocator)
		err     error
		// seen are the subsets of the reviews.
		seen   []string
		want   string
		writes int32
	}{
		"nothing refuses the pod": {seen: []string{"a"}, want: "a", writes: 1},
		"a step refuses the pod":  {err: errRefused, seen: []string{"a"}},
		"another pod takes the place meanwhile": {
			between: func(s *cluster, d *workloadspread.Allocator) { s.admit(d, cloned("p2"), "2") },
			seen:    []string{"a", "b"}, want: "b", writes: 1,
		},
		"the subsets change meanwhile": {
			between: func(s *cluster, _ *workloadspread.Allocator) {
				ws := s.stored("s")
				ws.Generation = 2
				s.put(ws)
				s.show(s.index, "s")
			},
			seen: []string{"a", "a"}, want: "a", writes: 1,
		},
		"a percentage of no replicas has no place": {change: half, seen: []string{"a", "b"}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			ws := spread("s", "CloneSet", 1, -1)
			if c.change != nil {
				c.change(ws)
			}
			s.put(ws)
			d, x := s.replica(workloadspread.Options{})
			s.index = x
			s.show(x, "s")
			var seen []string
			got, err := d.Admit(t.Context(), workloadspread.Request{
				Namespace: shop, Pod: cloned("p"), UID: "1", Review: func(_ context.Context, p *corev1.Pod) error {
					if s.writes.Load() > 0 && c.between == nil {
						t.Error("the pod is recorded before the review")
					}
					if seen = append(seen, subsetOf(p)); len(seen) == 1 && c.between != nil {
						c.between(s, d)
					}
					return c.err
				},
			})
			if !errors.Is(err, c.err) || subsetOf(got) != c.want || !slices.Equal(seen, c.seen) {
				t.Errorf("subset %q, reviewed as %q, %v", subsetOf(got), seen, err)
			}
			if writes := s.writes.Load(); writes != c.writes {
				t.Errorf("%d writes, want %d", writes, c.writes)
			}
			for _, e := range s.stored("s").Status.VersionedSubsetStatuses[one] {
				if _, recorded := e.CreatingPods["p"]; recorded != (e.Name == c.want && c.writes > 0 && e.Name == "a") {
					t.Errorf("subset %s has the records %v", e.Name, e.CreatingPods)
				}
			}
		})
	}
}

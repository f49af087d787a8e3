package workloadspread_test

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/workloadspread"
)

// TestOrdinals: OpenKruise compared the ordinals of a StatefulSet as they are, also where the first ones are reserved.
// A pod keeps the zone of its volume if the other pods of its set show that.
func TestOrdinals(t *testing.T) {
	for name, c := range map[string]struct {
		start, replicas int32
		// others are the subsets that other pods show, by ordinal.
		others map[int]string
		spread string
		owner  string
		pod    int
		want   string
		reads  int32
	}{
		"without a first ordinal nobody asks": {replicas: 6, pod: 1, want: "a", reads: 1},
		"a new set goes by ranks":             {start: 5, replicas: 2, pod: 6, want: "a", reads: 2},
		"a set of OpenKruise": {
			start: 5, replicas: 4, pod: 6, want: "c", reads: 2, others: map[int]string{5: "c", 7: "c"},
		},
		"a set of ours": {start: 5, replicas: 4, pod: 6, want: "a", reads: 2, others: map[int]string{5: "a", 7: "b"}},
		"the next pod waits for its own creation": {
			start: 5, replicas: 4, pod: 6, want: "c", reads: 3, others: map[int]string{7: "c"},
		},
		"a pod elsewhere shows nothing": {
			start: 5, replicas: 4, pod: 6, want: "c", reads: 3, others: map[int]string{5: "b", 7: "c"},
		},
		"pods of another set show nothing": {
			start: 5, replicas: 4, pod: 6, want: "a", reads: 4, owner: "db", others: map[int]string{5: "c", 7: "c", 8: "c"},
		},
		"pods of another WorkloadSpread as well": {
			start: 5, replicas: 4, pod: 6, want: "a", reads: 4, spread: "x", others: map[int]string{5: "c", 7: "c", 8: "c"},
		},
		"a large set asks for few pods": {start: 5, replicas: 1000, pod: 6, want: "a", reads: 4},
		"both say the same":             {start: 5, replicas: 100, pod: 30, want: "c", reads: 1},
		"a pod that the set does not want any more": {
			start: 5, replicas: 1, pod: 6, want: "c", reads: 2, others: map[int]string{5: "c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			s.put(spread("s", "StatefulSet", 2, 2, -1))
			set := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: &c.replicas},
			}
			if c.start > 0 {
				set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: c.start}
			}
			s.put(set)
			for ordinal, in := range c.others {
				owner, ws := "web", "s"
				if c.owner != "" {
					owner = c.owner
				}
				if c.spread != "" {
					ws = c.spread
				}
				other := pod(fmt.Sprintf("web-%d", ordinal), "apps/v1", "StatefulSet", owner)
				match, err := json.Marshal(map[string]string{"name": ws, "subset": in})
				if err != nil {
					t.Fatal(err)
				}
				other.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": string(match)}
				other.OwnerReferences[0].Controller = ptr.To(true)
				s.put(other)
			}
			d, x := s.replica(workloadspread.Options{})
			s.show(x, "s")
			got := subsetOf(s.admit(d, pod(fmt.Sprintf("web-%d", c.pod), "apps/v1", "StatefulSet", "web"), "1"))
			if got != c.want || s.reads.Load() != c.reads {
				t.Errorf("subset %q, %d live reads", got, s.reads.Load())
			}
		})
	}
}

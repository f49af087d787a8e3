package order_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/order"
)

// pods are web-0 to web-11, of which the odd ones come first by priority.
func pods() (all []*corev1.Pod) {
	for i := range 12 {
		name := fmt.Sprintf("web-%d", i)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Labels: map[string]string{"first": fmt.Sprint(i % 2)},
		}}
		all = append(all, p)
	}
	return all
}

func names(pods []*corev1.Pod) (all []string) {
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return all
}

func odds() *kruise.UpdatePriorityStrategy {
	return &kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{{
		Weight: 1, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"first": "1"}},
	}}}
}

func TestStatefulSet(t *testing.T) {
	cases := map[string]struct {
		rolling *v1beta1.RollingUpdateStatefulSetStrategy
		want    []string
	}{
		"from the last ordinal": {nil, []string{"web-11", "web-10", "web-9"}},
		"without another order": {&v1beta1.RollingUpdateStatefulSetStrategy{}, []string{"web-11", "web-10", "web-9"}},
		"priority before ordinal": {
			&v1beta1.RollingUpdateStatefulSetStrategy{
				UnorderedUpdate: &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: odds()},
			},
			[]string{"web-11", "web-9", "web-7", "web-5"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set, given := &v1beta1.StatefulSet{}, pods()
			set.Spec.UpdateStrategy.RollingUpdate = c.rolling
			got := names(order.StatefulSet(set, given))
			if len(got) != 12 || !slices.Equal(got[:len(c.want)], c.want) {
				t.Errorf("got %v, want %v first", got, c.want)
			}
			if given[0].Name != "web-0" {
				t.Error("the given pods were sorted")
			}
		})
	}
	odd := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web-x"}}, {ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}}
	if got := names(order.StatefulSet(&v1beta1.StatefulSet{}, odd)); !slices.Equal(got, []string{"web-1", "web-x"}) {
		t.Errorf("one without an ordinal comes last: %v", got)
	}
}

func TestCloneSet(t *testing.T) {
	set := &v1beta1.CloneSet{}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{PriorityStrategy: odds()}
	got := names(order.CloneSet(set, pods(), time.Unix(0, 0)))
	if len(got) != 12 {
		t.Fatalf("got %v", got)
	}
	for i, name := range got {
		var n int
		if _, err := fmt.Sscanf(name, "web-%d", &n); err != nil || (n%2 == 1) != (i < 6) {
			t.Errorf("the odd ones are not the first six: %v", got)
			break
		}
	}
	if again := names(order.CloneSet(set, pods(), time.Unix(0, 0))); !slices.Equal(got, again) {
		t.Errorf("got %v, then %v", got, again)
	}
	plain := names(order.CloneSet(&v1beta1.CloneSet{}, pods(), time.Unix(0, 0)))
	if slices.Sort(plain); len(slices.Compact(plain)) != 12 {
		t.Errorf("pods are lost: %v", plain)
	}
}

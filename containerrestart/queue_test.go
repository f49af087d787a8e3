package containerrestart_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
)

// queue has requests that were created before the one under test.
func queue(n int, with ...func(*request)) []*request {
	var all []*request
	for i := range n {
		all = append(all,
			admitted(append([]func(*request){in(pending), named(fmt.Sprintf("r%03d", i), -float64(n-i))}, with...)...))
	}
	return all
}

func TestQueue(t *testing.T) {
	other := admitted(named("other-pod", -9), func(r *request) {
		r.Labels[appsv1beta1.ContainerRecreateRequestPodUIDKey] = "u0"
	})
	all := []*request{
		admitted(named("new-b", 1)), admitted(named("new-a", 1)), admitted(named("newest", 9)), admitted(named("old", 0)),
		admitted(named("pending", 5), in(pending)), admitted(named("running", 7), in(recreating)),
		admitted(named("odd", 0.5), in("Odd")),
		admitted(named("done", -5), done(3)), admitted(named("deleted", -5), deleting), other,
	}
	var got []string
	for _, r := range containerrestart.Queue("u1", all) {
		got = append(got, r.Name)
	}
	want := []string{"running", "pending", "old", "odd", "new-a", "new-b", "newest"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	slices.Reverse(all)
	var again []string
	for _, r := range containerrestart.Queue("u1", all) {
		again = append(again, r.Name)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("the order of the input matters:\n%s", diff)
	}
}

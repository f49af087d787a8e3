package ephemeraljob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A thousand pods that refuse cost a bounded number of writes in one pass, and all of them are tried.
func TestManyRefusals(t *testing.T) {
	job := newJob(parallelism(100))
	names, errs := []string{}, map[string]error{}
	for i := range 1000 {
		names = append(names, fmt.Sprintf("p%03d", i))
		errs[names[i]] = forbidden("no")
	}
	in := snapshot{job: job, pods: newPods(job, strings.Join(names, " ")), now: epoch()}
	tried := map[types.UID]bool{}
	for passes := 1; ; passes++ {
		outcome, added := answered(planOf(in), errs)
		if fresh := len(outcome.Refused) - len(tried); fresh > maxRefusals || len(added) > 0 {
			t.Fatalf("%d writes in a pass", fresh)
		}
		for uid := range outcome.Refused {
			tried[uid] = true
		}
		in.refused = outcome.Refused
		if outcome.RequeueAfter > time.Millisecond {
			if len(tried) != 1000 || passes != 16 || outcome.RequeueAfter != retryRefused {
				t.Errorf("%d pods after %d passes, requeue %v", len(tried), passes, outcome.RequeueAfter)
			}
			return
		}
	}
}

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/demo/writes"
)

// Check fails where a rollout in place has not kept every pod and restarted one container in each changed one.
func TestCheck(t *testing.T) {
	good := Row{Part: newImage, Workload: cloneSetName, Pods: 30, Kept: 30, Changed: 15, Restarted: 15}
	lost, again, fresh := good, good, good
	lost.Kept, again.Restarted, fresh.Started = 29, 16, 1
	recreated := Row{Part: newVariable, Workload: cloneSetName, Pods: 30, Started: 30, Changed: 30}
	other := Row{Part: newImage, Workload: deploymentName, Pods: 30, Started: 30, Changed: 30}
	for name, c := range map[string]struct {
		rows []Row
		ok   bool
	}{
		"as told":           {[]Row{good, other, good, recreated}, true},
		"a pod is lost":     {[]Row{good, lost}, false},
		"restarted twice":   {[]Row{again}, false},
		"a pod is new":      {[]Row{fresh}, false},
		"nothing was shown": {[]Row{recreated, other}, false},
	} {
		if err := Check(c.rows); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSummary(t *testing.T) {
	rows := []Row{
		{
			Part: newImage, Workload: deploymentName, Name: "Deployment", Pods: 30, Started: 30, Took: 10 * time.Second,
			Changed: 30, Writes: writes.Count{Pods: 60, Others: 301, Nodes: 120},
		},
		{
			Part: newImage, Workload: cloneSetName, Name: "CloneSet, first half", Pods: 30, Kept: 30, Restarted: 15,
			Took: 3 * time.Second, Changed: 15, Writes: writes.Count{Pods: 60, Others: 8, Nodes: 30},
		},
	}
	const want = heads + `A new image
  CloneSet, first half 30 of 30         15    0     3.0   4.0   0.5   2.0   6.5
  Deployment            0 of 30          0   30    10.0   2.0  10.0   4.0  16.0
A new environment variable
`
	if diff := cmp.Diff(want, Summary(rows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

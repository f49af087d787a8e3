package rollout

import (
	"testing"

	"github.com/kruisekit/kruisekit/test/demo/screen"
)

// Check fails where a rollout in place has not kept every pod and restarted one container in each changed one.
func TestCheck(t *testing.T) {
	good := Row{Part: newImage, Workload: cloneSetName, Row: screen.Row{Pods: 30, Kept: 30, Changed: 15, Restarted: 15}}
	lost, again, fresh := good, good, good
	lost.Kept, again.Restarted, fresh.Started = 29, 16, 1
	recreated := Row{Part: newVariable, Workload: cloneSetName, Row: screen.Row{Pods: 30, Started: 30, Changed: 30}}
	other := Row{Part: newImage, Workload: deploymentName, Row: screen.Row{Pods: 30, Started: 30, Changed: 30}}
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

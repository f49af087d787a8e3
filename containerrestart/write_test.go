package containerrestart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/containerrestart"
)

func done30(r *request) { r.Status.CompletionTime = ptr.To(stamp(30)) }

// TestWritePatch says which writes another client's write keeps from happening.
func TestWritePatch(t *testing.T) {
	stopped := []containerrestart.Attempt{{Request: "r1", Container: "app", Done: true}}
	states := in(recreating, st("app", pending, false, ""), st("log", pending, false, ""))
	cases := map[string]struct {
		why, want string
		work      containerrestart.Work
	}{
		"while it runs": {
			"whoever ended the request meanwhile is not written over",
			`{"metadata":{"resourceVersion":"5","uid":"r1"},"status":{"containerRecreateStates":[{"name":"app","phase":"Recreating","isKilled":true},{"name":"log","phase":"Pending"}]}}`,
			containerrestart.Work{
				Request:    admitted(states),
				Containers: []containerrestart.Container{up("app", 0, -60), up("log", 0, -60)},
				Attempts:   stopped,
			},
		},
		"late": {
			"the manager may write what it likes",
			`{"metadata":{"uid":"r1"},"status":{"containerRecreateStates":[{"name":"app","phase":"Recreating","isKilled":true},{"name":"log","phase":"Pending"}]}}`,
			containerrestart.Work{Request: admitted(states, done(9)), Attempts: stopped},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.work.Now = at(30)
			if diff := cmp.Diff(tc.want, patch(t, containerrestart.Next(tc.work).Write)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

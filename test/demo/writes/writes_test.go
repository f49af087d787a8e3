package writes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/demo/writes"
)

// logged is one line of an audit log.
func logged(second int, agent, resource, name string) string {
	return fmt.Sprintf(
		`{"kind":"Event","stage":"ResponseComplete","verb":"patch","user":{"username":"admin"},"userAgent":%q,`+
			`"objectRef":{"resource":%q,"namespace":"demo","name":%q,"subresource":"status"},"requestReceivedTimestamp":"2030-01-01T12:00:%02d.000000Z"}`,
		agent, resource, name, second)
}

func TestTurns(t *testing.T) {
	log := strings.Join([]string{
		strings.Replace(logged(1, "demo", "clonesets", "web"), "patch", "create", 1),
		logged(2, "manager", "pods", "web-1"),
		logged(3, "nodes", "pods", "web-1"),
		logged(9, "manager", "clonesets", "web"),
		logged(8, "nodes", "pods", "web-1"),
		logged(5, "demo", "clonesets", "web"), // changed; the log is out of order
		logged(6, "manager", "pods", "web-1"),
		strings.Replace(logged(7, "kube-controller-manager/v1 (linux/amd64) kubernetes/5d/replicasets", "pods", ""), "{",
			`{"requestObject":{"metadata":{"generateName":"plain-5d-"}},`, 1),
		logged(7, "replicasets", "replicasets", "plain-5d"),
		logged(7, "nodes", "pods", "plain-5d-1"),
		logged(7, "nodes", "pods", "webbing-1"),
		logged(10, "demo", "deployments", "plain"),
	}, "\n") + "\n" + `{"requestReceived`
	entries, err := writes.Read(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		why  string
		side writes.Side
		want []writes.Count
	}{
		"one side": {
			"all components share one user",
			writes.Side{Resource: "clonesets", Name: "web", Agents: []string{"manager"}, Owner: "demo"},
			[]writes.Count{{Pods: 1, Nodes: 1}, {Pods: 1, Others: 1, Nodes: 1}},
		},
		"the other side": {
			"pods that the API server names are counted too, and so are objects in between",
			writes.Side{Resource: "deployments", Name: "plain", Agents: []string{"replicasets"}, Owner: "demo"},
			[]writes.Count{{Pods: 1, Others: 1, Nodes: 1}, {}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.side.Turns(entries)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestReadRefusesWhatIsNoLog(t *testing.T) {
	if _, err := writes.Read(strings.NewReader("no log\n" + logged(1, "b", "pods", "c"))); err == nil {
		t.Error("a broken line in the middle is no line that is being written")
	}
}

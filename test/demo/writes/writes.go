// Package writes counts what each side of a comparison asks an API server to write, from the server's audit log: the
// one place that sees every writer, the controllers of Deployments and ReplicaSets too, and that counts all alike.
//
// What is counted are requests that create, change or delete, whatever the answer was. What is not are events, leases
// and everything about nodes: Policy keeps them out of the log.
package writes

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Policy is the audit policy of an API server whose writes in a namespace are to be counted.
func Policy(namespace string) string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request # the name of a new pod is not in its metadata
  namespaces: [` + namespace + `]
  verbs: [create]
  resources: [{group: "", resources: [pods]}]
- level: Metadata
  namespaces: [` + namespace + `]
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: "", resources: [pods, "pods/*"]}
  - {group: apps}
  - {group: apps.kruise.io}
- level: None
`
}

// Entry is one write.
type Entry struct {
	// At is when the request came in.
	At time.Time `json:"requestReceivedTimestamp"`
	// Verb is what was asked for: create, patch, ...
	Verb string `json:"verb"`
	// Agent is the component that wrote.
	Agent string `json:"userAgent"`
	// Object is what was written.
	Object Object `json:"objectRef"`
	// Body of a new pod.
	Body struct {
		Metadata struct {
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
	} `json:"requestObject"`
}

// Object is what an entry is about. Name is empty where the API server made it.
type Object struct {
	Resource string `json:"resource"`
	Name     string `json:"name"`
}

// longest is how long a line of the log may be.
const longest = 1 << 20

// Read gives the entries of an audit log in the order of their requests. A last line that is being written is left out.
func Read(log io.Reader) ([]Entry, error) {
	var entries []Entry
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, longest)
	var broken error
	for lines.Scan() {
		if broken != nil {
			return nil, broken
		}
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			broken = fmt.Errorf("read audit log: %w", err)
			continue
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.At.Compare(b.At) })
	return entries, lines.Err()
}

// Side says whose writes are for one of the compared workloads.
type Side struct {
	// Resource and Name of the workload. The names of its pods, ReplicaSets and revisions begin with Name and a dash.
	Resource, Name string
	// Agents are its controllers.
	Agents []string
	// Owner is the agent that changes the workload. Its own writes are not counted.
	Owner string
}

// Count is how many writes there were.
type Count struct {
	// Pods are those of the controllers to pods, and Others those to all else: the workload, its status and revisions.
	Pods, Others int
	// Nodes are those of the scheduler and the kubelets.
	Nodes int
}

// All is everybody's.
func (c Count) All() int { return c.Pods + c.Others + c.Nodes }

// Turns counts the writes for a side, from each patch of the owner to its workload to the next. The first is what came
// before any.
func (s Side) Turns(entries []Entry) []Count {
	turns := []Count{{}}
	for _, e := range entries {
		if e.Agent == s.Owner {
			if e.Verb == "patch" && e.Object.Resource == s.Resource && e.Object.Name == s.Name {
				turns = append(turns, Count{})
			}
			continue
		}
		if !s.about(e) {
			continue
		}
		turn := &turns[len(turns)-1]
		// A controller of kube-controller-manager appends its name to the agent of the program.
		own := slices.Contains(s.Agents, e.Agent[strings.LastIndex(e.Agent, "/")+1:])
		switch {
		case own && e.Object.Resource == "pods":
			turn.Pods++
		case own:
			turn.Others++
		default:
			turn.Nodes++
		}
	}
	return turns
}

// about says whether an object is the workload, or one of its pods, ReplicaSets and revisions.
func (s Side) about(e Entry) bool {
	name := cmp.Or(e.Object.Name, e.Body.Metadata.GenerateName)
	return e.Object.Resource == s.Resource && name == s.Name || strings.HasPrefix(name, s.Name+"-")
}

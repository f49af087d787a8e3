package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/demo/writes"
)

const (
	// Owner is the agent that changes the workloads.
	Owner = "kruisekit-demo"
	// Manager is the agent that reconciles CloneSets, and Deployments that ask for it.
	Manager = "kruisekit-demo-manager"

	// flush is how long the API server may take to write its log.
	flush = 10 * time.Second
)

// Row is what one workload did in one step.
type Row struct {
	// Part of the summary, and what the workload is called there.
	Part, Name string
	// Workload is its name, and Turn which of the changes to it this was.
	Workload string
	Turn     int
	// Pods there were before, Kept those that are still there, and Changed those of the new revision.
	Pods, Kept, Changed int
	// Restarted are containers that restarted in kept pods, and Started those of new pods.
	Restarted, Started int
	Took               time.Duration
	Writes             writes.Count
}

// row is the result of a step.
func (a *actor) row(s step) Row {
	r := Row{
		Part: s.part, Name: a.title(), Workload: a.name(), Turn: a.turn, Took: a.took,
		Pods: len(a.before), Kept: a.last.kept, Changed: a.last.updated - a.was,
		Restarted: a.last.restarted, Started: a.last.started,
	}
	if r.Workload == cloneSetName {
		r.Name = s.row
	}
	return r
}

func sideOf(workload string) writes.Side {
	s := writes.Side{
		Resource: "deployments", Name: workload, Owner: Owner,
		Agents: []string{"deployment-controller", "replicaset-controller"},
	}
	switch workload {
	case cloneSetName:
		s.Resource, s.Agents = "clonesets", []string{Manager}
	case inPlaceName:
		s.Agents = append(s.Agents, Manager)
	}
	return s
}

// end is a last write to the CloneSet, which marks in the log that all before it are there.
func (p *Play) end(ctx context.Context) error {
	set := &v1beta1.CloneSet{}
	set.Namespace, set.Name = Namespace, cloneSetName
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"demo.kruisekit.dev/over":"true"}}}`))
	if err := p.Client.Patch(ctx, set, patch); err != nil {
		return fmt.Errorf("mark the end: %w", err)
	}
	return nil
}

// CountWrites fills in what each row cost, from the API server's log.
func CountWrites(ctx context.Context, log string, rows []Row) error {
	var entries []writes.Entry
	err := wait.PollUntilContextTimeout(ctx, tick, flush, true, func(context.Context) (bool, error) {
		file, err := os.Open(log)
		if err != nil {
			return false, err
		}
		entries, err = writes.Read(file)
		over := len(sideOf(cloneSetName).Turns(entries)) > len(story())+1 // the beginning, and the end
		return over, errors.Join(err, file.Close())
	})
	if err != nil {
		return fmt.Errorf("count writes: %w", err)
	}
	for i := range rows {
		r := &rows[i]
		turns := sideOf(r.Workload).Turns(entries)
		if r.Turn >= len(turns) {
			return fmt.Errorf("count writes: the log has only %d of the changes to %s", len(turns), r.Workload)
		}
		r.Writes = turns[r.Turn]
	}
	return nil
}

const heads = `                           pods     containers          API writes per pod
                           kept  restarted  new seconds  pods other nodes   all
`

// Summary is a table of rows, by what was changed.
func Summary(rows []Row) string {
	var b strings.Builder
	b.WriteString(heads)
	for _, part := range []string{newImage, newVariable} {
		b.WriteString(part + "\n")
		for _, workload := range []string{cloneSetName, inPlaceName, deploymentName} {
			for _, r := range rows {
				if r.Part == part && r.Workload == workload {
					b.WriteString(r.columns() + "\n")
				}
			}
		}
	}
	return b.String()
}

func (r Row) columns() string {
	perPod := func(n int) float64 { return float64(n) / float64(max(r.Changed, 1)) }
	w := r.Writes
	return fmt.Sprintf("  %-21s%2d of %2d %10d %4d %7.1f %5.1f %5.1f %5.1f %5.1f",
		r.Name, r.Kept, r.Pods, r.Restarted, r.Started, r.Took.Seconds(),
		perPod(w.Pods), perPod(w.Others), perPod(w.Nodes), perPod(w.Pods+w.Others+w.Nodes))
}

// Check says what the story has not shown: that the change of an image keeps all pods of the CloneSet and of the
// Deployment that asks for it, and restarts one container in each that it changes.
func Check(rows []Row) error {
	var failures []error
	shown := 0
	for _, r := range rows {
		if r.Workload == deploymentName || r.Part != newImage {
			continue
		}
		shown++
		if r.Kept != r.Pods || r.Restarted != r.Changed || r.Started > 0 {
			failures = append(failures, fmt.Errorf("%s: %d of %d pods kept, %d changed, %d containers restarted",
				r.Name, r.Kept, r.Pods, r.Changed, r.Restarted))
		}
	}
	if shown == 0 {
		failures = append(failures, errors.New("no rollout in place"))
	}
	return errors.Join(failures...)
}

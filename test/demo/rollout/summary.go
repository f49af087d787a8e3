package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/demo/screen"
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

func sides() map[string]writes.Side {
	return map[string]writes.Side{
		cloneSetName: {Resource: "clonesets", Name: cloneSetName, Agents: []string{Manager}, Owner: Owner},
		deploymentName: {
			Resource: "deployments", Name: deploymentName, Owner: Owner,
			Agents: []string{"deployment-controller", "replicaset-controller"},
		},
		inPlaceName: {
			Resource: "deployments", Name: inPlaceName, Owner: Owner,
			Agents: []string{"deployment-controller", "replicaset-controller", Manager},
		},
	}
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
	changes := 0
	for _, r := range rows {
		if r.Workload == cloneSetName {
			changes++
		}
	}
	var entries []writes.Entry
	err := wait.PollUntilContextTimeout(ctx, tick, flush, true, func(context.Context) (bool, error) {
		file, err := os.Open(log)
		if err != nil {
			return false, err
		}
		entries, err = writes.Read(file)
		over := len(sides()[cloneSetName].Turns(entries)) > changes+1 // the beginning, and the end
		return over, errors.Join(err, file.Close())
	})
	if err != nil {
		return fmt.Errorf("count writes: %w", err)
	}
	for i := range rows {
		r := &rows[i]
		turns := sides()[r.Workload].Turns(entries)
		if r.Turn >= len(turns) {
			return fmt.Errorf("count writes: the log has only %d of the changes to %s", len(turns), r.Workload)
		}
		count := turns[r.Turn]
		r.OnPods, r.OnOthers, r.OfNodes = count.Pods, count.Others, count.Nodes
	}
	return nil
}

// Summary orders rows by what was changed.
func Summary(rows []Row) []screen.Change {
	var parts []screen.Change
	for _, title := range []string{newImage, newVariable} {
		part := screen.Change{Title: title}
		for _, r := range rows {
			if r.Part == title && r.Workload == cloneSetName {
				part.Rows = append(part.Rows, r.Row)
			}
		}
		for _, r := range rows {
			if r.Part == title && r.Workload != cloneSetName {
				part.Rows = append(part.Rows, r.Row)
			}
		}
		parts = append(parts, part)
	}
	return parts
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

package imagepull_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// fleet is n nodes that list nothing.
func fleet(n int) (nodes []*v1beta1.NodeImage) {
	for i := range n {
		nodes = append(nodes, nodeImage(fmt.Sprintf("node-%02d", i)))
	}
	return nodes
}

// execute asks nodes until nothing is left to ask, and returns how many were asked.
func execute(
	t *testing.T, q *imagepull.Request, nodes []*v1beta1.NodeImage, refuses func(name string) bool,
) (asked int) {
	t.Helper()
	q.Refused = map[string]error{}
	for {
		plan, err := q.Review(nodes)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Update) == 0 {
			return asked
		}
		for i, n := range nodes {
			switch {
			case !slices.Contains(plan.Update, n.Name):
				continue
			case refuses(n.Name):
				q.Refused[n.Name] = errors.New("too large")
			default:
				nodes[i] = apply(t, q.For(n.Name), n)
			}
			asked++
		}
		if asked > 2*len(nodes) {
			t.Fatalf("%d nodes of %d were asked", asked, len(nodes))
		}
	}
}

func none(string) bool { return false }

// A NodeImage that takes no change is reported, and holds up no other node.
func TestRefused(t *testing.T) {
	for _, deadline := range []func(*v1beta1.ImagePullJob){func(*v1beta1.ImagePullJob) {}, deadline(1)} {
		q := request(pullJob("web", "nginx:1", parallel(2)))
		nodes := fleet(5)
		asked := execute(t, &q, nodes, func(name string) bool { return name == "node-00" })
		plan, err := q.Review(nodes)
		if err != nil || asked != 3 || plan.Status.Active != 2 ||
			!strings.Contains(plan.Status.Message, "NodeImages that take no change: 1") ||
			plan.Notes[0].Code != imagepull.NoteRefused || plan.Notes[0].Object != "node-00" {
			t.Errorf("asked %d nodes, got %+v, %v", asked, plan, err)
		}
		deadline(q.Job)
		q.Job.Status.StartTime = ago(centuries())
		if plan, err = q.Review(nodes); err != nil || q.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds != nil &&
			len(plan.Status.FailedNodes) != len(nodes) {
			t.Errorf("after the deadline: %+v, %v", plan, err)
		}
	}
}

// The promise of the reconciler: in whatever order nodes end, the status changes once as the job begins, and at most
// once for each node that ends. Nodes that the job selects later cost one more each.
func TestStatusChanges(t *testing.T) {
	eachCase(t, 200, func(r *random) string {
		q := request(pullJob("web", "nginx:1", parallel(int32(1+r.Intn(4)))))
		all := fleet(1 + r.Intn(8))
		selected := slices.Clone(all[:1+r.Intn(len(all))])
		late, changes := len(all)-len(selected), 0
		for pass := 0; ; pass++ {
			if pass > 50 {
				return "the job does not end"
			}
			execute(t, &q, selected, none)
			plan, err := q.Review(selected)
			if err != nil {
				return err.Error()
			}
			if jsonOf(plan.Status) != jsonOf(q.Job.Status) {
				changes++
			}
			if q.Job.Status = plan.Status; plan.Status.CompletionTime != nil {
				break
			}
			if len(selected) < len(all) && r.once(3) {
				selected = append(selected, all[len(selected)])
			}
			for i, n := range selected {
				if tags := n.Spec.Images["nginx"].Tags; len(tags) == 1 && len(n.Status.ImageStatuses) == 0 && r.once(2) {
					n = n.DeepCopy()
					n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{{
						Tag: "1", Version: tags[0].Version, Phase: pick(r, v1beta1.ImagePhaseSucceeded, v1beta1.ImagePhaseFailed),
					}}}}
					selected[i] = n
				}
			}
		}
		if most := 1 + len(selected) + late; changes > most {
			return fmt.Sprintf("%d changes of the status with %d nodes, of which %d came late", changes, len(selected), late)
		}
		return ""
	})
}

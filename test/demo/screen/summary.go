package screen

import (
	"fmt"
	"strings"
	"time"
)

// Change is what several workloads have done about one change.
type Change struct {
	Title string
	Rows  []Row
}

// Row is what one workload has done.
type Row struct {
	Name string
	// Pods there were before, and Kept those that are still there.
	Pods, Kept int
	// Restarted are containers that restarted in kept pods, and Started those of new pods.
	Restarted, Started int
	Took               time.Duration
	// Changed pods, and how many writes that took: of the controllers to pods and to all else, and of the scheduler and
	// the kubelets.
	Changed, OnPods, OnOthers, OfNodes int
}

const heads = `                           pods     containers          API writes per pod
                           kept  restarted  new seconds  pods other nodes   all
`

// perPod are writes as some of each changed pod.
func (r Row) perPod(writes int) float64 { return float64(writes) / float64(max(r.Changed, 1)) }

// Summary is a table of changes.
func Summary(changes []Change) string {
	var b strings.Builder
	b.WriteString(heads)
	for _, c := range changes {
		b.WriteString(c.Title + "\n")
		for _, r := range c.Rows {
			b.WriteString(r.columns() + "\n")
		}
	}
	return b.String()
}

func (r Row) columns() string {
	return fmt.Sprintf("  %-21s%2d of %2d %10d %4d %7.1f %5.1f %5.1f %5.1f %5.1f",
		r.Name, r.Kept, r.Pods, r.Restarted, r.Started, r.Took.Seconds(),
		r.perPod(r.OnPods), r.perPod(r.OnOthers), r.perPod(r.OfNodes), r.perPod(r.OnPods+r.OnOthers+r.OfNodes))
}

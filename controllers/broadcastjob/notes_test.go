package broadcastjob

import (
	"strings"
	"testing"
)

// Notes explain what a job waits for.
func TestNotes(t *testing.T) {
	for name, c := range map[string]struct {
		job         changes
		nodes, pods string
		want        string
	}{
		"no node": {nil, "", "", "NoNodeFits: no node fits the pod template"},
		"too many": {
			job:   changes{parallelism("0")},
			nodes: "a",
			pods:  "a=running",
			want:  "TooManyActivePods: 1 pods are active, the parallelism is 0",
		},
		"duplicate": {nil, "a", "a=running a=pending", "DuplicatePodCreatedOnSameNode check-1: node a has pod check-0"},
		"two ended": {nil, "a", "a=succeeded a=running", "DuplicatePodCreatedOnSameNode check-0: node a has pod check-1"},
		"evicted": {
			nodes: "a:evicting",
			pods:  "a=running",
			want:  "NodeNoLongerFits check-0: node a no longer fits (TaintNotTolerated)",
		},
		"gone": {nil, "b", "a=pending", "NodeGone check-0: the pod waits for node a, which does not exist"},
		"restarts": {
			job:   changes{restarting(1), policy(goOn)},
			nodes: "a b",
			pods:  "a=2",
			want:  "RestartLimitExceeded check-0: the containers have restarted 2 times, the limit is 1",
		},
		"paused": {changes{paused}, "a", "", "Paused: spec.paused is set"},
		"pause":  {changes{policy(pause)}, "a", "a=failed", "Paused: 1 pods failed (check-0), delete them to continue"},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(c.job...)
			pass := planOf(snapshot{job: job, nodes: newNodes(c.nodes), pods: newPods(job, c.pods), now: epoch()})
			var all []string
			for _, n := range pass.notes {
				all = append(all, n.String())
			}
			if text := strings.Join(all, "\n"); !strings.Contains(text, c.want) {
				t.Errorf("want %q in\n%s", c.want, text)
			}
		})
	}
}

package broadcastjob

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// FuzzPlan: whatever is stored, a plan neither panics nor counts below zero, and the pass that follows the writes asks
// for no more.
func FuzzPlan(f *testing.F) {
	f.Add(`{"spec":{"parallelism":"50%","completionPolicy":{"activeDeadlineSeconds":9223372036854775807,"ttlSecondsAfterFinished":-5}}}`,
		`{"metadata":{"name":"p"},"spec":{"nodeName":"a"},"status":{"phase":"Failed"}}`, `{"metadata":{"name":"a"}}`)
	f.Add(`{"metadata":{"name":"x."},"status":{"phase":"?","startTime":"2200-01-01T00:00:00Z","conditions":[{"type":"Complete","status":"True"}]}}`,
		`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{}]}}}}}`,
		`{"metadata":{"name":"a"},"spec":{"taints":[{"key":"","effect":"?"}]}}`)
	f.Add(`{"spec":{"parallelism":-3,"failurePolicy":{"type":"Pause","restartLimit":-1}}}`,
		`{"spec":{"restartPolicy":"OnFailure"}}`, `{}`)
	f.Fuzz(func(t *testing.T, job, pod, node string) {
		in := snapshot{
			job: &v1beta1.BroadcastJob{}, pods: []*corev1.Pod{{}}, nodes: []*corev1.Node{{}}, now: epoch(),
		}
		if json.Unmarshal([]byte(job), in.job) != nil || json.Unmarshal([]byte(pod), in.pods[0]) != nil ||
			json.Unmarshal([]byte(node), in.nodes[0]) != nil {
			t.Skip()
		}
		in.job.Default()
		pass := planOf(in)
		if over(in.job) || in.job.DeletionTimestamp != nil {
			return
		}
		status := concluded(pass)
		if status.Active < 0 || status.Succeeded < 0 || status.Failed < 0 || status.Desired < 0 || pass.after < 0 {
			t.Errorf("status %+v, after %s", status, pass.after)
		}
		in.job.Status = status
		for _, d := range pass.remove {
			d.DeletionTimestamp = in.job.Status.StartTime
		}
		in.pods = append(in.pods, pass.create...)
		again := planOf(in)
		if len(again.create)+len(again.remove) > 0 {
			t.Errorf("again: creates %d, deletes %d", len(again.create), len(again.remove))
		}
	})
}

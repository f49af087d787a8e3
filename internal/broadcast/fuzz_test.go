package broadcast_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/broadcast"
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
		in := broadcast.Input{
			Job: &v1beta1.BroadcastJob{}, Pods: []*corev1.Pod{{}, nil}, Nodes: []*corev1.Node{{}, nil}, Now: epoch(),
		}
		if json.Unmarshal([]byte(job), in.Job) != nil || json.Unmarshal([]byte(pod), in.Pods[0]) != nil ||
			json.Unmarshal([]byte(node), in.Nodes[0]) != nil {
			t.Skip()
		}
		in.Job.Default()
		pass, err := broadcast.Plan(in)
		if err != nil {
			return
		}
		if broadcast.Over(in.Job) || in.Job.DeletionTimestamp != nil {
			return
		}
		status := pass.Conclude(len(pass.Create), pass.Delete)
		if status.Active < 0 || status.Succeeded < 0 || status.Failed < 0 || status.Desired < 0 || pass.RequeueAfter < 0 {
			t.Errorf("status %+v, after %s", status, pass.RequeueAfter)
		}
		in.Job.Status = status
		for _, d := range pass.Delete {
			d.Pod.DeletionTimestamp = in.Job.Status.StartTime
		}
		in.Pods = append(in.Pods, pass.Create...)
		again, err := broadcast.Plan(in)
		if err != nil || len(again.Create)+len(again.Delete) > 0 {
			t.Errorf("again: %v, creates %d, deletes %d", err, len(again.Create), len(again.Delete))
		}
	})
}

package ephemeraljob

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// FuzzPlan decodes a job and a pod: whatever the API server may hold, a pass is planned, its writes have a body, and a
// second pass over its status changes nothing.
func FuzzPlan(f *testing.F) {
	f.Add(`{"metadata":{"uid":"a"},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"ephemeralContainers":[{"name":"a"}]}}}`,
		`{"metadata":{"labels":{"app":"web"}}}`)
	f.Add(`{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]},"replicas":-1,"parallelism":-1,"activeDeadlineSeconds":-9223372036854775808,"template":{"ephemeralContainers":[{},{}]}}}`,
		`{"spec":{"ephemeralContainers":[{"name":""}]}}`)
	f.Add(
		`{"spec":{"ttlSecondsAfterFinished":-1},"status":{"completionTime":"0001-01-01T00:00:00Z","conditions":[{},{}]}}`,
		`null`)
	f.Fuzz(func(t *testing.T, object, other string) {
		job, pod := &ephemeralJob{}, &corev1.Pod{}
		if json.Unmarshal([]byte(object), job) != nil || json.Unmarshal([]byte(other), pod) != nil {
			return
		}
		was, had := job.DeepCopy(), pod.DeepCopy()
		in := snapshot{job: job, pods: []*corev1.Pod{pod}, now: epoch()}
		pass := planOf(in)
		if data, err := addition(job, pod).Data(); err != nil || !json.Valid(data) {
			t.Errorf("the write has no body: %v", err)
		}
		outcome, added := answered(pass, nil)
		if diff := cmp.Diff([]any{was, had}, []any{job, pod}); diff != "" {
			t.Errorf("the input changed:\n%s", diff)
		}
		if outcome.RequeueAfter < 0 {
			t.Errorf("requeue after %v", outcome.RequeueAfter)
		}
		in.job, in.pods = job.DeepCopy(), withContainers(in, added)
		in.job.Status = outcome.Status
		if again, _ := answered(planOf(in), nil); !cmp.Equal(outcome.Status, again.Status) {
			t.Errorf("the second pass changes the status:\n%s", cmp.Diff(outcome.Status, again.Status))
		}
	})
}

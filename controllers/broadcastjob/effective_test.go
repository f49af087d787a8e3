package broadcastjob

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// Plan decides the same about a spec with faults and about the effective one, which has none.
func TestEffectivePlan(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := draw(r)
		spec := &in.job.Spec
		spec.FailurePolicy.Type = v1beta1.FailurePolicyType([]string{"continue", "FailFast", "Pause", "Stop"}[r.IntN(4)])
		spec.FailurePolicy.RestartLimit = int32(r.IntN(5) - 3)
		if spec.CompletionPolicy.Type != v1beta1.Never {
			spec.CompletionPolicy.Type = v1beta1.CompletionPolicyType([]string{"Always", "never", "Once"}[r.IntN(3)])
			spec.CompletionPolicy.TTLSecondsAfterFinished = ptr.To(int32(r.IntN(5) - 3))
			spec.CompletionPolicy.ActiveDeadlineSeconds = ptr.To(int64(r.IntN(120) - 10))
		} else {
			spec.CompletionPolicy.ActiveDeadlineSeconds = nil
		}
		if r.IntN(3) == 0 {
			parallelism([]string{"-1", "-50%"}[r.IntN(2)])(in.job)
		}
		in.now = in.now.Add(time.Duration(r.IntN(60)) * time.Second)
		want := planOf(in)
		job := in.job.DeepCopy()
		job.Spec = *validation.EffectiveBroadcastJob(&in.job.Spec)
		if faults := validation.BroadcastJobSpec(&job.Spec, nil); len(faults) > 0 {
			t.Fatalf("seed %d: %v", seed, faults)
		}
		in.job = job
		got := planOf(in)
		if diff := cmp.Diff([]any{want.status, created(want), deleted(want), want.after, want.deleteJob},
			[]any{got.status, created(got), deleted(got), got.after, got.deleteJob}); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

package broadcast_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/broadcast"
)

// What admission rejects has a valid value of the same effect. What is valid stays.
func TestEffective(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"nothing": {`{}`, `{}`},
		"valid": {
			`{"parallelism":"50%","completionPolicy":{"type":"Never"},"failurePolicy":{"type":"Pause","restartLimit":3}}`, ``,
		},
		"unknown": {
			`{"completionPolicy":{"type":"never"},"failurePolicy":{"type":"failFast"}}`,
			`{"completionPolicy":{"type":"Always"},"failurePolicy":{"type":"Continue"}}`,
		},
		"negative": {
			`{"parallelism":-3,"completionPolicy":{"activeDeadlineSeconds":-1,"ttlSecondsAfterFinished":-1},"failurePolicy":{"restartLimit":-1}}`,
			`{"parallelism":0,"completionPolicy":{"activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0}}`,
		},
		"a negative percentage": {`{"parallelism":"-1%"}`, `{"parallelism":0}`},
		"words":                 {`{"parallelism":"many"}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			var spec, want v1beta1.BroadcastJobSpec
			if c.want == "" {
				c.want = c.spec
			}
			if err := json.Unmarshal([]byte(c.spec), &spec); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, broadcast.Effective(&spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Plan decides the same about a spec with faults and about the effective one, which has none.
func TestEffectivePlan(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := draw(r)
		spec := &in.Job.Spec
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
			parallelism([]string{"-1", "-50%"}[r.IntN(2)])(in.Job)
		}
		in.Now = in.Now.Add(time.Duration(r.IntN(60)) * time.Second)
		want := plan(t, in)
		job := in.Job.DeepCopy()
		job.Spec = *broadcast.Effective(&in.Job.Spec)
		if faults := broadcast.ValidateSpec(&job.Spec, nil); len(faults) > 0 {
			t.Fatalf("seed %d: %v", seed, faults)
		}
		in.Job = job
		got := plan(t, in)
		if diff := cmp.Diff([]any{want.Status, created(want), deleted(want), want.RequeueAfter, want.DeleteJob},
			[]any{got.Status, created(got), deleted(got), got.RequeueAfter, got.DeleteJob}); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

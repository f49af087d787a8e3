package ephemeraljob

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/rig/patches"
	"github.com/kruisekit/kruisekit/write"
)

// The write appends all containers, each with the variable of the job as the last one, and fails for a pod that is not
// what the plan has seen.
func TestWrite(t *testing.T) {
	job := newJob(two, func(j *v1alpha1.EphemeralJob) {
		j.Spec.Template.EphemeralContainers[0].Env = []corev1.EnvVar{
			{Name: "KRUISE_EJOB_ID", Value: "uid-other"}, {Name: "A", Value: "B"},
		}
	})
	for name, c := range map[string]struct {
		have  string
		was   func(*corev1.Pod)
		fails bool
	}{
		"the first ones":     {"due", func(*corev1.Pod) {}, false},
		"beside another one": {"debugged", func(*corev1.Pod) {}, false},
		"unrelated changes":  {"due", func(p *corev1.Pod) { p.Labels["x"], p.Status.Phase = "y", corev1.PodPending }, false},
		"another pod":        {"due", func(p *corev1.Pod) { p.UID = "uid-other" }, true},
		"a pod that goes":    {"due", func(p *corev1.Pod) { p.DeletionTimestamp = ptrTo(epoch()) }, true},
		"a container meanwhile": {"due", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{container("shell", "uid-other")}
		}, true},
		"other containers meanwhile": {
			"debugged", func(p *corev1.Pod) { p.Spec.EphemeralContainers[0].Name = "shell" }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := newPod(job, "a", c.have)
			w := addition(job, seen)
			data, err := w.Data()
			if err != nil {
				t.Fatal(err)
			}
			is := seen.DeepCopy()
			c.was(is)
			raw, err := json.Marshal(is)
			if err != nil {
				t.Fatal(err)
			}
			raw, err = patches.Apply(raw, w.Type, data, is)
			if c.fails {
				if !write.IsOutdated(err) {
					t.Errorf("the patch is applied: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := &corev1.Pod{}
			if err := json.Unmarshal(raw, got); err != nil {
				t.Fatal(err)
			}
			shell, dump := container("shell", job.UID), container("dump", job.UID)
			shell.Env = append([]corev1.EnvVar{{Name: "A", Value: "B"}}, shell.Env...)
			want := append(seen.DeepCopy().Spec.EphemeralContainers, shell, dump)
			if diff := cmp.Diff(want, got.Spec.EphemeralContainers); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := patches.CheckPod(w.Subresource, is, got); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of two variables the last one has effect.
func TestOwnership(t *testing.T) {
	job := newJob()
	rule, err := newRule(job)
	if err != nil {
		t.Fatal(err)
	}
	pod := newPod(job, "a", "running")
	env := &pod.Spec.EphemeralContainers[0].Env
	for _, c := range []struct {
		last types.UID
		want podState
	}{{"uid-other", podTaken}, {job.UID, podRunning}} {
		*env = append(*env, corev1.EnvVar{Name: "KRUISE_EJOB_ID", Value: string(c.last)})
		if got := rule.state(pod); got != c.want {
			t.Errorf("the last owner is %s: %s", c.last, got)
		}
	}
}

// What a job decides about a lean pod is what it decides about the whole one.
func TestLeanPod(t *testing.T) {
	job := newJob(two)
	r, err := newRule(job)
	if err != nil {
		t.Fatal(err)
	}
	for _, states := range []string{
		"due", "unselected", "ended", "deleting", "taken", "debugged", "running", "succeeded,failed", "pulling",
	} {
		whole := newPod(job, "a", states)
		slim := whole.DeepCopy()
		stored.LeanPod(slim)
		want, err := addition(job, whole).Data()
		if err != nil {
			t.Fatal(err)
		}
		got, err := addition(job, slim).Data()
		if err != nil || string(got) != string(want) || r.state(slim) != r.state(whole) {
			t.Errorf("%s: state %s, write %s, %v", states, r.state(slim), got, err)
		}
	}
}

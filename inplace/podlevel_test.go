package inplace_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// podLevel is a template with resources of the pod as a whole; empty for none.
func podLevel(cpu string) *corev1.PodTemplateSpec {
	t := template(container("c1", "app:1"))
	if cpu != "" {
		t.Spec.Resources = &corev1.ResourceRequirements{
			Requests: amounts("cpu", cpu, "memory", "1Gi"), Limits: amounts("cpu", "4", "memory", "1Gi"),
		}
	}
	return t
}

func TestDiffPodResources(t *testing.T) {
	resizable := inplace.Installation{Resize: true, ResizePods: true}
	cases := map[string]struct {
		from, to  *corev1.PodTemplateSpec
		installed inplace.Installation
		want      map[string]corev1.ResourceRequirements
		blocked   bool
	}{
		"a request changes": {
			from: podLevel("1"), to: podLevel("2"), installed: resizable,
			want: map[string]corev1.ResourceRequirements{"": {Requests: amounts("cpu", "2")}},
		},
		"the cluster resizes containers only": {
			from: podLevel("1"), to: podLevel("2"), installed: inplace.Installation{Resize: true}, blocked: true,
		},
		"the same amount in other words": {from: podLevel("1"), to: podLevel("1000m")},
		"the class of service changes":   {from: podLevel("1"), to: podLevel("4"), installed: resizable, blocked: true},
		"the first resources":            {from: podLevel(""), to: podLevel("1"), installed: resizable, blocked: true},
		"the last resources":             {from: podLevel("1"), to: podLevel(""), installed: resizable, blocked: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			change, err := inplace.Diff(c.from, c.to, c.installed.Policy())
			if c.blocked != (err != nil) {
				t.Fatalf("blocked %v, want %t", err, c.blocked)
			}
			if err == nil && len(change.Resources)+len(c.want) > 0 {
				if d := cmp.Diff(c.want, change.Resources); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// The resources of a pod change by one resize, which the node reports with conditions. No container restarts.
func TestPodResources(t *testing.T) {
	policy := inplace.Installation{Resize: true, ResizePods: true}.Policy()
	change, err := inplace.Diff(podLevel("1"), podLevel("2"), policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, grace := range []int32{0, 5} {
		policy.Unready = inplace.UnreadyAlways
		pod, now := running(podLevel("1"), "web-1"), noon()
		pod.Generation, pod.Status.ObservedGeneration = 1, 1
		u := inplace.Update{Pod: pod, Change: change, Revision: "web-2", GraceSeconds: grace}
		next := func() inplace.Action {
			t.Helper()
			action, err := inplace.Next(u, policy, now)
			if err != nil {
				t.Fatal(err)
			}
			return action
		}
		resizes, action := 0, next()
		for ; action.Verdict == inplace.Write || action.After <= 5*time.Second; action = next() {
			if action.Verdict == inplace.Wait {
				now = now.Add(action.After)
				continue
			}
			if len(action.Restarts) > 0 {
				t.Errorf("restarts %v", action.Restarts)
			}
			u.Pod = applied(t, u.Pod, action)
			if action.Write.Subresource == write.Resize {
				resizes++
				u.Pod.Generation++
			}
		}
		got := u.Pod.Spec.Resources
		if d := cmp.Diff(podLevel("2").Spec.Resources, got); d != "" || resizes != 1 {
			t.Errorf("grace %d: %d resizes: %s", grace, resizes, d)
		}
		waits := func(code string) {
			t.Helper()
			if action := next(); action.Verdict != inplace.Wait || action.Notes[0].Code != code {
				t.Errorf("grace %d: %+v, want %s", grace, action, code)
			}
		}
		waits(inplace.NoteResize) // the node has not seen the pod
		u.Pod.Status.ObservedGeneration = u.Pod.Generation
		for reason, code := range map[string]string{
			corev1.PodReasonDeferred: inplace.NoteDeferred, corev1.PodReasonInfeasible: inplace.NoteInfeasible,
		} {
			u.Pod.Status.Conditions = append(u.Pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason,
			})
			waits(code)
			u.Pod.Status.Conditions = u.Pod.Status.Conditions[:len(u.Pod.Status.Conditions)-1]
		}
		if action := next(); action.Verdict == inplace.Wait {
			t.Errorf("grace %d: %+v after the resize", grace, action)
		}
	}
}

package inplace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/inplace"
)

// stepOf is the step of a write, with what restarts.
func stepOf(a inplace.Action) string {
	text := string(a.Step)
	if len(a.Restarts) > 0 {
		text += ", restarts " + strings.Join(a.Restarts, " ")
	}
	return text
}

// stepsTo updates a pod, while its node does at once what is written, and returns the steps. Last it shows the pod.
func stepsTo(
	t *testing.T, pod *corev1.Pod, u inplace.Update, p inplace.Policy, show func(*corev1.Pod),
) []string {
	t.Helper()
	k, err := start(pod, p.Env == inplace.EnvRestart, "")
	if err != nil {
		t.Fatal(err)
	}
	now := noon()
	var all []string
	for range 20 {
		u.Pod = k.pod
		a, err := inplace.Next(u, p, now)
		switch {
		case err != nil:
			t.Fatal(err)
		case a.Verdict == inplace.Complete:
			show(k.pod)
			return all
		case a.Verdict == inplace.Wait:
			if a.Step != "" || a.Restarts != nil {
				t.Errorf("a wait with a step: %+v", a)
			}
			if now = now.Add(a.After); a.Notes[0].Code == inplace.NoteGrace {
				continue
			}
			for range 3 {
				for i := range k.pod.Spec.Containers {
					if _, err := k.sync(i, now); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := k.tell(true); err != nil {
				t.Fatal(err)
			}
			continue
		}
		all = append(all, stepOf(a))
		k.pod = applied(t, k.pod, a)
	}
	t.Fatalf("the update does not complete: %v", all)
	return nil
}

// TestSteps counts the writes of an update: each step is one.
func TestSteps(t *testing.T) {
	first := template(
		container("c1", "app:1", fed("FED", "metadata.labels['a']"), requests("cpu", "1"), restartsOn("cpu")),
		container("c2", "app:1", requests("cpu", "1")),
	)
	ordered := template(container("c1", "app:1", launch(2)), container("c2", "app:1", launch(1)))
	resize := func(at int) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[at].Resources.Requests = amounts("cpu", "2") }
	}
	cases := map[string]struct {
		from, to *corev1.PodTemplateSpec
		policy   inplace.Policy
		grace    int32
		want     []string
	}{
		"an image restarts one container": {
			from: first, to: with(first, image(1, "app:2")),
			want: []string{"NotReady", "Change, restarts c2", "Ready"},
		},
		"metadata restarts nothing": {
			from: first, to: with(first, label("b", "1")), want: []string{"Change"},
		},
		"a revision alone changes the label": {from: first, to: first, want: []string{"Relabel"}},
		"a label that feeds a variable restarts the container that reads it": {
			from: first, to: with(first, label("a", "1")),
			want: []string{"NotReady", "Change, restarts c1", "Ready"},
		},
		"a label that no longer feeds a variable restarts it, too": {
			from: with(first, label("a", "1")), to: first,
			want: []string{"NotReady", "Change, restarts c1", "Ready"},
		},
		"a resize restarts where its policy says so": {
			from: first, to: with(first, resize(0), resize(1)),
			want: []string{"NotReady", "Resize, restarts c1", "Change", "Ready"},
		},
		"a resize alone begins an update in traffic": {
			from: first, to: with(first, resize(1)), want: []string{"Resize", "Change"},
		},
		"an image after a resize restarts once more": {
			from: first, to: with(first, resize(0), image(0, "app:2")),
			want: []string{"NotReady", "Resize, restarts c1", "Change, restarts c1", "Ready"},
		},
		"a grace period comes between": {
			from: first, to: with(first, image(0, "app:2")), grace: 5,
			want: []string{"NotReady", "Grace", "Change, restarts c1", "Ready"},
		},
		"without the readiness gate the grace period begins the update": {
			from: with(first, noGate), to: with(first, noGate, image(0, "app:2")), grace: 5,
			want: []string{"Grace", "Change, restarts c1"},
		},
		"each batch restarts its own containers": {
			from: ordered, to: with(ordered, image(0, "app:2"), image(1, "app:2")),
			want: []string{"NotReady", "Change, restarts c1", "Change, restarts c2", "Ready"},
		},
		"the reference takes a pod out for metadata": {
			from: first, to: with(first, label("b", "1")), policy: inplace.Policy{Unready: inplace.UnreadyAlways},
			want: []string{"NotReady", "Change", "Ready"},
		},
		"the label changes last": {
			from: first, to: with(first, image(0, "app:2")), policy: inplace.Policy{Relabel: inplace.RelabelDone},
			want: []string{"NotReady", "Change, restarts c1", "Ready", "Relabel"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.policy.Env, c.policy.Resources = inplace.EnvRestart, inplace.ResourcesAdded
			change, err := inplace.Diff(c.from, c.to, c.policy)
			if err != nil {
				t.Fatal(err)
			}
			got := stepsTo(t, running(c.from, "web-1"), inplace.Update{
				Change: change, Revision: "web-2", GraceSeconds: c.grace,
			}, c.policy, func(*corev1.Pod) {})
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func ExampleAction_step() {
	pod := webPod()
	change := &inplace.Change{Images: map[string]string{"main": "nginx:2"}}
	for range 2 {
		action, err := inplace.Next(inplace.Update{Pod: pod, Change: change, Revision: "web-2"}, inplace.Policy{}, noon())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(action.Step, action.Restarts)
		pod.Status.Conditions[0].Status = corev1.ConditionFalse // as if the write was sent
	}
	// Output:
	// NotReady []
	// Change [main]
}

func ExampleChange_Restarts() {
	change, err := inplace.Diff(web("nginx:1", "info"), web("nginx:2", "info"), inplace.Policy{})
	fmt.Println(change.Restarts(webPod()), err)
	// Output: [main] <nil>
}

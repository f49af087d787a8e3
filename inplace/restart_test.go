package inplace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// stepOf is the step of a write, with whether the update begins and what restarts.
func stepOf(a inplace.Action) string {
	text := string(a.Step)
	if a.Begins {
		text += ", begins"
	}
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
			if a.Step != "" || a.Begins || a.Restarts != nil {
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
			want: []string{"NotReady, begins", "Change, restarts c2", "Ready"},
		},
		"metadata restarts nothing": {
			from: first, to: with(first, label("b", "1")), want: []string{"Change, begins"},
		},
		"a revision alone changes the label": {from: first, to: first, want: []string{"Relabel, begins"}},
		"a label that feeds a variable restarts the container that reads it": {
			from: first, to: with(first, label("a", "1")),
			want: []string{"NotReady, begins", "Change, restarts c1", "Ready"},
		},
		"a label that no longer feeds a variable restarts it, too": {
			from: with(first, label("a", "1")), to: first,
			want: []string{"NotReady, begins", "Change, restarts c1", "Ready"},
		},
		"a resize restarts where its policy says so": {
			from: first, to: with(first, resize(0), resize(1)),
			want: []string{"NotReady, begins", "Resize, restarts c1", "Change", "Ready"},
		},
		"a resize alone begins an update in traffic": {
			from: first, to: with(first, resize(1)), want: []string{"Resize, begins", "Change"},
		},
		"an image after a resize restarts once more": {
			from: first, to: with(first, resize(0), image(0, "app:2")),
			want: []string{"NotReady, begins", "Resize, restarts c1", "Change, restarts c1", "Ready"},
		},
		"resources with the rest of the pod restart once": {
			from: first, to: with(first, resize(0), image(1, "app:2")), policy: inplace.Policy{ResizeInSpec: true},
			want: []string{"NotReady, begins", "Change, restarts c1 c2", "Ready"},
		},
		"a grace period comes between": {
			from: first, to: with(first, image(0, "app:2")), grace: 5,
			want: []string{"NotReady, begins", "Grace", "Change, restarts c1", "Ready"},
		},
		"without the readiness gate the grace period begins the update": {
			from: with(first, noGate), to: with(first, noGate, image(0, "app:2")), grace: 5,
			want: []string{"Grace, begins", "Change, restarts c1"},
		},
		"each batch restarts its own containers": {
			from: ordered, to: with(ordered, image(0, "app:2"), image(1, "app:2")),
			want: []string{"NotReady, begins", "Change, restarts c1", "Change, restarts c2", "Ready"},
		},
		"the label changes last": {
			from: first, to: with(first, image(0, "app:2")), policy: inplace.Policy{Relabel: inplace.RelabelDone},
			want: []string{"NotReady, begins", "Change, restarts c1", "Ready", "Relabel"},
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

// TestBegins looks at pods whose update is under way: no write of another update begins one.
func TestBegins(t *testing.T) {
	first := template(container("c1", "app:1"), container("c2", "app:1", requests("cpu", "1")))
	image := &inplace.Change{Images: images("c1", "app:2")}
	resize := &inplace.Change{Resources: map[string]corev1.ResourceRequirements{"c2": {Requests: amounts("cpu", "2")}}}
	cases := map[string]struct {
		why    string
		pod    func(*corev1.Pod)
		change *inplace.Change
		policy inplace.Policy
		want   string
	}{
		"ready": {why: "no update is under way", change: image, want: "NotReady, begins"},
		"never opened": {
			why:    "a gate without a condition is that of a new pod",
			pod:    func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:2] },
			change: image, want: "NotReady, begins",
		},
		"out of traffic": {
			why: "an update of the pod has written that",
			pod: func(p *corev1.Pod) {
				condition(p, kruise.InPlaceUpdateReady).Status = corev1.ConditionFalse
				condition(p, corev1.PodReady).Status = corev1.ConditionFalse
			},
			change: image, want: "Change, restarts c1",
		},
		"incomplete": {
			why: "the node has not done the last update", change: image, want: "NotReady",
			pod: func(p *corev1.Pod) {
				stateText(oneImage)(p)
				p.Spec.Containers[0].Image = "app:3"
			},
		},
		"resized": {
			why:    "the resize of this update was written",
			pod:    func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Requests = amounts("cpu", "2") },
			change: resize, want: "Change",
		},
		"pending": {
			why:    "the label of the last update is not written",
			pod:    func(p *corev1.Pod) { p.Annotations = map[string]string{inplace.PendingRevisionKey: "web-1"} },
			change: &inplace.Change{Metadata: inplace.Metadata{Labels: map[string]*string{"x": ptr.To("y")}}},
			policy: inplace.Policy{Relabel: inplace.RelabelLast}, want: "Change",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(first, "web-0")
			if c.pod != nil {
				c.pod(pod)
			}
			a, err := inplace.Next(inplace.Update{Pod: pod, Change: c.change, Revision: "web-2"}, c.policy, noon())
			if err != nil || stepOf(a) != c.want {
				t.Errorf("%s: want %q, got %q, %v", c.why, c.want, stepOf(a), err)
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
		fmt.Println(action.Step, action.Begins, action.Restarts)
		pod.Status.Conditions[0].Status = corev1.ConditionFalse // as if the write was sent
	}
	// Output:
	// NotReady true []
	// Change false [main]
}

func ExampleChange_Restarts() {
	change, err := inplace.Diff(web("nginx:1", "info"), web("nginx:2", "info"), inplace.Policy{})
	fmt.Println(change.Restarts(webPod()), err)
	// Output: [main] <nil>
}

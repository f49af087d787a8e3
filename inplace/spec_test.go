package inplace_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
)

// unreachable is a toleration of the taint for which the API server adds one to pods without.
func unreachable(seconds int64) corev1.Toleration {
	return corev1.Toleration{
		Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: &seconds,
	}
}

// specChange changes all that may change in the spec without a restart.
func specChange(t *corev1.PodTemplateSpec) {
	t.Spec.InitContainers[0].Image = "init:2"
	t.Spec.Tolerations = append(t.Spec.Tolerations, corev1.Toleration{Key: "a"}, unreachable(60))
	t.Spec.ActiveDeadlineSeconds = ptr.To[int64](3600)
}

func specPolicy() inplace.Policy {
	return inplace.Policy{InitImages: true, Tolerations: true, ActiveDeadline: true}
}

func withInit() *corev1.PodTemplateSpec {
	t := template(container("c1", "app:1"), container("c2", "app:1"))
	t.Spec.InitContainers = []corev1.Container{container("i1", "init:1"), container("i2", "init:1")}
	return t
}

// TestSpecChange writes what changes without a restart with the first write of the pod itself, whatever else changes.
func TestSpecChange(t *testing.T) {
	deadline := func(s int64) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &s } }
	added := []corev1.Toleration{{Key: "a"}, unreachable(60)}
	cases := map[string]struct {
		pod      func(*corev1.Pod)
		more     func(*corev1.PodTemplateSpec)
		unready  inplace.Unready
		grace    int32
		want     []string
		tolerate []corev1.Toleration
		deadline int64
	}{
		"one write in traffic": {want: []string{"Change, begins"}, tolerate: added, deadline: 3600},
		"the toleration that the API server has added gives way": {
			pod: func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "x"}, unreachable(300), {Key: "a"}}
			},
			want:     []string{"Change, begins"},
			tolerate: []corev1.Toleration{{Key: "x"}, unreachable(60), {Key: "a"}}, deadline: 3600,
		},
		"another toleration of the same taint stays": {
			pod:  func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{unreachable(30)} },
			want: []string{"Change, begins"}, tolerate: append([]corev1.Toleration{unreachable(30)}, added...), deadline: 3600,
		},
		"a higher deadline is lowered": {
			pod: deadline(7200), want: []string{"Change, begins"}, tolerate: added, deadline: 3600,
		},
		"a lower deadline stays": {pod: deadline(60), want: []string{"Change, begins"}, tolerate: added, deadline: 60},
		"an image with it": {
			more: image(1, "app:2"), want: []string{"NotReady, begins", "Change, restarts c2", "Ready"},
			tolerate: added, deadline: 3600,
		},
		"before the grace period": {
			more: image(0, "app:2"), grace: 5, tolerate: added, deadline: 3600,
			want: []string{"NotReady, begins", "Grace", "Change, restarts c1", "Ready"},
		},
		"out of traffic, where every change is": {
			unready: inplace.UnreadyAlways, tolerate: added, deadline: 3600,
			want: []string{"NotReady, begins", "Change", "Ready"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			from, policy := withInit(), specPolicy()
			policy.Unready = c.unready
			to := with(from, specChange)
			if c.more != nil {
				c.more(to)
			}
			change, err := inplace.Diff(from, to, policy)
			if err != nil {
				t.Fatal(err)
			}
			pod := running(from, "web-1")
			if c.pod != nil {
				c.pod(pod)
			}
			var last *corev1.Pod
			u := inplace.Update{Change: change, Revision: "web-2", GraceSeconds: c.grace}
			got := stepsTo(t, pod, u, policy, func(p *corev1.Pod) { last = p })
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.tolerate, last.Spec.Tolerations); d != "" {
				t.Errorf("tolerations (-want +got):\n%s", d)
			}
			if got := ptr.Deref(last.Spec.ActiveDeadlineSeconds, 0); got != c.deadline {
				t.Errorf("want the deadline %d, got %d", c.deadline, got)
			}
			if got := last.Spec.InitContainers[0].Image + last.Spec.InitContainers[1].Image; got != "init:2init:1" {
				t.Errorf("want one new image, got %s", got)
			}
		})
	}
}

// TestSpecChangeBlocked allows nothing of it without the policy, and nothing that the API server rejects.
func TestSpecChangeBlocked(t *testing.T) {
	from := withInit()
	to := with(from, specChange)
	one := func(c func(*inplace.Policy)) inplace.Policy {
		p := inplace.Policy{}
		c(&p)
		return p
	}
	cases := map[string]struct {
		from, to *corev1.PodTemplateSpec
		policy   inplace.Policy
		want     []string
	}{
		"nothing is allowed": {
			from: from, to: to, want: []string{
				"spec.activeDeadlineSeconds", "spec.initContainers[i1].image", "spec.tolerations",
			},
		},
		"init images": {
			from: from, to: to, policy: one(func(p *inplace.Policy) { p.InitImages = true }), want: []string{
				"spec.activeDeadlineSeconds", "spec.tolerations",
			},
		},
		"tolerations": {
			from: from, to: to, policy: one(func(p *inplace.Policy) { p.Tolerations = true }),
			want: []string{"spec.activeDeadlineSeconds", "spec.initContainers[i1].image"},
		},
		"a deadline": {
			from: from, to: to, policy: one(func(p *inplace.Policy) { p.ActiveDeadline = true }), want: []string{
				"spec.initContainers[i1].image", "spec.tolerations",
			},
		},
		"the way back": {
			from: to, to: from, policy: specPolicy(), want: []string{"spec.activeDeadlineSeconds", "spec.tolerations"},
		},
		"a native sidecar is no init container": {
			from: sidecar("app:1"), to: sidecar("app:2"), policy: specPolicy(),
			want: []string{"spec.initContainers[proxy].image"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := inplace.Diff(c.from, c.to, c.policy)
			if d := cmp.Diff(c.want, paths(t, err)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestSpecProperty leads pods from a random template to another, by writes that the API server takes.
func TestSpecProperty(t *testing.T) {
	r := newRand(t)
	for n := 0; n < 1_000/fewer(); {
		from := withInit()
		for range r.IntN(4) {
			randomSpec(r, from)
		}
		to := from.DeepCopy()
		for range 1 + r.IntN(4) {
			randomSpec(r, to)
		}
		to.Spec.InitContainers[r.IntN(2)].Image = oneOf(r, "init:1", "init:2")
		change, err := inplace.Diff(from, to, specPolicy())
		if err != nil || change.Empty() {
			continue
		}
		n++
		pod, last := running(from, "web-1"), (*corev1.Pod)(nil)
		shuffle(r, &corev1.PodTemplateSpec{Spec: pod.Spec})
		u := inplace.Update{Change: change, Revision: "web-2"}
		steps := stepsTo(t, pod, u, specPolicy(), func(p *corev1.Pod) { last = p })
		got := with(to, func(t *corev1.PodTemplateSpec) { t.Spec = last.Spec })
		if len(steps) != 1 || !revision.Same(byName(got), byName(to)) {
			t.Fatalf("%v\nfrom %s\nto   %s\ngot  %s", steps, encoded(t, from), encoded(t, to), encoded(t, last.Spec))
		}
	}
}

// paths are those of all blocks of an error.
func paths(t *testing.T, err error) []string {
	t.Helper()
	var blocked *inplace.BlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("want it blocked, got %v", err)
	}
	var all []string
	for _, b := range blocked.Blocks {
		all = append(all, b.Path)
	}
	return all
}

package workload_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
)

// A write that another writer reverts is made again at most once a minute, however often the reverted pod causes a
// pass, and the rollout goes on when the other writer stops.
func TestRevertedAcrossPasses(t *testing.T) {
	const duration = 20 * time.Minute
	cases := map[string]struct {
		// revert changes a pod that was written back to how it was; in the answer, or else between two passes.
		revert   func(pod, before *corev1.Pod)
		inAnswer bool
	}{
		"all of a write: a webhook undoes all of each write": {
			func(pod, before *corev1.Pod) { *pod = *before.DeepCopy() }, true,
		},
		"the image: a webhook pins the image, and lets annotations with new times pass": {
			func(pod, before *corev1.Pod) {
				pod.Spec, pod.Labels = *before.Spec.DeepCopy(), before.DeepCopy().Labels
			}, true,
		},
		"the readiness gate: a webhook keeps the readiness gate open": {
			func(pod, before *corev1.Pod) { pod.Status.Conditions = before.DeepCopy().Status.Conditions }, true,
		},
		"the revision: another controller restores labels and images": {
			func(pod, before *corev1.Pod) {
				pod.Spec, pod.Labels = *before.Spec.DeepCopy(), before.DeepCopy().Labels
			}, false,
		},
		"the labels of the revision: a webhook removes labels that it does not know": {
			func(pod, _ *corev1.Pod) { delete(pod.Labels, "hash") }, true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, ready("a", "web-1", "web:1"))
			before := s.pods["a"]
			if c.inAnswer {
				s.reverts = func(pod *corev1.Pod) { c.revert(pod, before) }
			}
			writes, known := map[string][]time.Time{}, workload.Repeats{}
			pass := func() *workload.Pass {
				in := s.input()
				in.Repeats = known
				in.RevisionLabels = func(name string) map[string]string { return map[string]string{"hash": name} }
				sent := len(s.sent)
				p := s.run(in)
				known = p.Repeats()
				for _, w := range s.sent[sent:] {
					writes[w] = append(writes[w], s.now)
				}
				return p
			}
			noted := false
			for end := s.now.Add(duration); s.now.Before(end); s.now = s.now.Add(time.Second) { // an event comes each second
				p := pass()
				headline, _ := note.Headline(p.Notes())
				noted = noted || headline.Code == workload.NoteReverted && p.RequeueAfter() > 0
				if !c.inAnswer {
					pod := s.pods["a"].DeepCopy()
					c.revert(pod, before)
					s.pods["a"] = pod
				}
				s.restart()
			}
			if !noted {
				t.Errorf("no pass has noted it")
			}
			for w, times := range writes {
				// Three at once, six with growing pauses, one a minute; an update also follows upon a reverted label.
				if most := 2 * (3 + 6 + int(duration/time.Minute)); len(times) > most {
					t.Errorf("%q was sent %d times in %s, want at most %d", w, len(times), duration, most)
				}
			}
			s.reverts = nil
			for range 70 {
				pass()
				s.now = s.now.Add(time.Second)
				s.restart()
			}
			if pod := s.pods["a"]; pod.Labels[kruise.PodRevisionLabelKey] != "web-2" || !workload.IsReady(pod) {
				t.Errorf("a minute after the other writer has stopped, the pod is at %s, ready: %t",
					pod.Labels[kruise.PodRevisionLabelKey], workload.IsReady(pod))
			}
		})
	}
}

// Writes are forgotten, so that what is remembered of a workload does not grow.
func TestRepeatsAreForgotten(t *testing.T) {
	s := three(t)
	known := workload.Repeats{}
	for range 10 {
		in := s.input()
		in.Repeats = known
		known = s.run(in).Repeats()
		s.restart()
		s.now = s.now.Add(10 * time.Second)
	}
	if reflect.DeepEqual(known, workload.Repeats{}) {
		t.Error("the writes of the last minute are not known")
	}
	s.now = s.now.Add(time.Hour)
	in := s.input()
	in.Repeats = known
	if known = s.run(in).Repeats(); fmt.Sprint(known) != fmt.Sprint(workload.Repeats{}) {
		t.Errorf("writes are known after an hour: %v", known)
	}
}

// Passes whose writes are outdated each time are made less and less often, at most once a minute, and at once again as
// soon as one applies.
func TestOutdatedPasses(t *testing.T) {
	const duration = 20 * time.Minute
	s := newServer(t, ready("a", "web-1", "web:1"))
	s.fails = func(*workload.Write) error { return outdated() }
	known, passes := workload.Repeats{}, 0
	pass := func() time.Duration {
		in := s.input()
		in.Repeats = known
		p := s.run(in)
		known = p.Repeats()
		passes++
		return p.RequeueAfter()
	}
	for end := s.now.Add(duration); s.now.Before(end); {
		after := pass()
		if after <= 0 || after > time.Minute {
			t.Fatalf("pass %d asks for another one after %s", passes, after)
		}
		s.now = s.now.Add(after)
	}
	// Ten with short pauses, six with growing ones, one a minute.
	if most := 10 + 6 + int(duration/time.Minute); passes > most {
		t.Errorf("%d passes in %s, want at most %d", passes, duration, most)
	}
	s.fails = nil
	pass()
	s.fails = func(*workload.Write) error { return outdated() }
	s.pods["a"] = ready("a", "web-1", "web:1")
	if after := pass(); after != time.Second {
		t.Errorf("after a pass whose writes apply, the next one that is outdated asks for another one after %s", after)
	}
}

// Releases that follow each other fast are no writes that another writer reverts: each takes the pod out of traffic and
// back at once.
func TestManyReleases(t *testing.T) {
	s := newServer(t, ready("a", "web-1", "web:1"))
	known := workload.Repeats{}
	for n := 2; n < 12; n++ {
		name, before := fmt.Sprint("web-", n), rev(s, fmt.Sprint("web-", n-1), fmt.Sprint("web:", n-1))
		for range 10 { // seconds
			in := s.input()
			in.Repeats, in.Update, in.Current = known, rev(s, name, fmt.Sprint("web:", n)), before
			p := s.run(in)
			known = p.Repeats()
			for _, note := range p.Notes() {
				if note.Code == workload.NoteReverted {
					t.Fatalf("release %d: %v", n, note)
				}
			}
			s.restart()
			s.now = s.now.Add(time.Second)
		}
		if pod := s.pods["a"]; pod.Labels[kruise.PodRevisionLabelKey] != name || !workload.IsReady(pod) {
			t.Fatalf("release %d: the pod is at %s, ready: %t", n, pod.Labels[kruise.PodRevisionLabelKey], workload.IsReady(pod))
		}
	}
}

package podunavailablebudget

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/pub"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// newObject selects pods with app=web, and lets one be unavailable.
func newObject(name string, change ...func(*podUnavailableBudget)) *podUnavailableBudget {
	o := &podUnavailableBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Generation: 1,
	}}
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	o.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	for _, c := range change {
		c(o)
	}
	return o
}

// newPod is available, and has the label app=web.
func newPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
	}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func other(pod *corev1.Pod) { pod.Labels["app"] = "other" }

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon())) }

func stampedWith(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{kruise.PodRelatedPubKey: name} }
}

func controlledBy(uid types.UID) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: string(uid), UID: uid, Controller: ptr.To(true),
		}}
	}
}

// following is a tracker that follows a budget over pods, and how often it has listed.
func following(t *testing.T, tr *tracker, o *podUnavailableBudget, pods ...*corev1.Pod) (*snapshot, *int) {
	t.Helper()
	b, _ := pub.Read(o)
	lists := 0
	tr.expect(b, noon())
	_, err := tr.follow(b, scope{generation: b.Generation, selector: b.Selector}, func() (all []corev1.Pod, _ error) {
		lists++
		for _, pod := range pods {
			all = append(all, *pod)
		}
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return &snapshot{object: o, budget: b, exist: map[string]bool{o.Name: true}}, &lists
}

// wakes are the budgets that are requeued, with the pause.
func wakes(all []wake) []string {
	var texts []string
	for _, w := range all {
		texts = append(texts, fmt.Sprint(w.budget, " ", w.after))
	}
	slices.Sort(texts)
	return texts
}

func TestEventsOfPods(t *testing.T) {
	right := stampedWith("web")
	cases := map[string]struct {
		why    string
		before *corev1.Pod
		after  *corev1.Pod // nil for deleted
		want   []string
	}{
		"new":        {"it is to be stamped", nil, newPod("a", unready), []string{"web 0s"}},
		"another":    {"no budget selects it", nil, newPod("a", other), nil},
		"gets ready": {"it counts", newPod("a", right, unready), newPod("a", right), []string{"web 0s"}},
		"nothing": {
			why:    "a change that does not matter wakes no budget",
			before: newPod("a", right),
			after:  newPod("a", right, func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }),
		},
		"leaves": {
			why: "it counts no longer", before: newPod("a", right), after: newPod("a", right, other), want: []string{"web 0s"},
		},
		"terminates": {
			why:    "it counts no longer, unless its record is on the way",
			before: newPod("a", right),
			after:  newPod("a", right, terminating),
			want:   []string{"web 50ms"},
		},
		"terminates, recorded": {
			why:    "its record has counted it already, and a pass decides how long the status waits",
			before: newPod("recorded", right),
			after:  newPod("recorded", right, terminating),
			want:   []string{"web 50ms"},
		},
		"deleted by force":         {"it counts no longer", newPod("a", right), nil, []string{"web 0s"}},
		"deleted when terminating": {"it did not count any more", newPod("a", right, terminating), nil, nil},
		"gets another controller": {
			why:    "the total may be another one",
			before: newPod("a", right, controlledBy("1")),
			after:  newPod("a", right, controlledBy("2")),
			want:   []string{"web 0s"},
		},
		"another pod of the name": {
			why:    "the new one counts as itself",
			before: newPod("a", right),
			after:  newPod("a", right, unready, func(p *corev1.Pod) { p.UID = "2" }),
			want:   []string{"web 0s"},
		},
		"ended": {
			why:    "it counts no longer",
			before: newPod("a", right),
			after:  newPod("a", right, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			want:   []string{"web 0s"},
		},
		"loses its stamp": {"it is to be stamped again", newPod("a", right), newPod("a"), []string{"web 0s"}},
		"in a namespace without any": {
			why: "one lookup in a map", after: newPod("a", func(p *corev1.Pod) { p.Namespace = "other" }),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr := &tracker{}
			var pods []*corev1.Pod
			if c.before != nil {
				pods = append(pods, c.before)
			}
			following(t, tr, newObject("web", func(o *podUnavailableBudget) {
				o.Status.DisruptedPods = map[string]metav1.Time{"recorded": metav1.NewTime(noon())}
			}), pods...)
			got := tr.remove
			if c.after == nil {
				c.after = c.before
			} else {
				got = tr.set
			}
			if diff := cmp.Diff(c.want, wakes(got(c.after))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// Ten thousand pods are listed once, and each event changes what it is about: the numbers stay those of the pods.
func TestNoEventListsPods(t *testing.T) {
	tr := &tracker{}
	var pods []*corev1.Pod
	for i := range 10000 {
		pods = append(pods, newPod(fmt.Sprint("web-", i), stampedWith("web"), controlledBy(types.UID(fmt.Sprint(i%3)))))
	}
	s, lists := following(t, tr, newObject("web"), pods...)
	for i, pod := range pods[:1000] {
		switch i % 4 {
		case 0:
			unready(pod)
			tr.set(pod)
		case 1:
			tr.remove(pod)
		case 2:
			terminating(pod)
			tr.set(pod)
		}
	}
	following(t, tr, s.object, pods...) // reconciles of the same budget
	s.total = pub.Total{Replicas: 10000}
	tr.with(s.key(), func(b *tracked) {
		p := plan(s, b, tr.namespaces["shop"], noon())
		if p.status.CurrentAvailable != 9250 || len(b.controllers()) != 3 || len(b.pods) != 9500 || len(p.stamps) != 0 {
			t.Errorf("%d available, %d controllers, %d pods, %d stamps",
				p.status.CurrentAvailable, len(b.controllers()), len(b.pods), len(p.stamps))
		}
	})
	if *lists != 1 {
		t.Errorf("pods were listed %d times", *lists)
	}
}

func TestStamps(t *testing.T) {
	first := newObject("first", func(o *podUnavailableBudget) { o.Spec.Selector.MatchLabels["tier"] = "a" })
	tierA := func(pod *corev1.Pod) { pod.Labels["tier"] = "a" }
	cases := map[string]struct {
		why   string
		pod   *corev1.Pod
		exist []string // besides web
		// unknown budgets exist and were not reconciled yet.
		unknown []string
		want    bool
	}{
		"none":  {"a pod gets its stamp", newPod("a"), nil, nil, true},
		"right": {"nothing to do", newPod("a", stampedWith("web")), nil, nil, false},
		"gone": {
			why: "the budget of the stamp does not exist", pod: newPod("a", stampedWith("gone")), want: true,
		},
		"another one that guards": {
			why:   "a pod keeps the stamp of a budget that guards it",
			pod:   newPod("a", tierA, stampedWith("first")),
			exist: []string{"first"},
		},
		"another one that guards not": {
			why: "its labels have changed", pod: newPod("a", stampedWith("first")), exist: []string{"first"}, want: true,
		},
		"another one that is not known": {
			why: "it may guard the pod", pod: newPod("a", stampedWith("young")), unknown: []string{"young"},
		},
		"none, and another one first": {"the other one stamps it", newPod("a", tierA), []string{"first"}, nil, false},
		"none, and the first is gone": {"its counts are not dropped yet", newPod("a", tierA), nil, nil, true},
		"terminating":                 {"it needs no stamp any more", newPod("a", terminating), nil, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr := &tracker{}
			following(t, tr, first, c.pod)
			s, _ := following(t, tr, newObject("web"), c.pod)
			for _, name := range append(c.exist, c.unknown...) {
				s.exist[name] = true
			}
			tr.with(s.key(), func(b *tracked) {
				p := plan(s, b, tr.namespaces["shop"], noon())
				if (len(p.stamps) == 1) != c.want {
					t.Errorf("%s: stamps %v", c.why, p.stamps)
				}
			})
		})
	}
	t.Run("many", func(t *testing.T) {
		tr := &tracker{}
		var pods []*corev1.Pod
		for i := range maxStamps + 1 {
			pods = append(pods, newPod(fmt.Sprintf("web-%04d", i)))
		}
		s, _ := following(t, tr, newObject("web"), pods...)
		tr.with(s.key(), func(b *tracked) {
			p := plan(s, b, tr.namespaces["shop"], noon())
			if len(p.stamps) != maxStamps || p.stamps[0].pod != "web-0000" || p.after != time.Second {
				t.Errorf("%d stamps from %s, again after %v", len(p.stamps), p.stamps[0].pod, p.after)
			}
		})
		tr.stamped(s.key(), stamp{"web-0000", "uid-web-0000"})
		tr.with(s.key(), func(b *tracked) {
			if p := plan(s, b, tr.namespaces["shop"], noon()); len(p.stamps) != maxStamps || p.stamps[0].pod != "web-0001" ||
				p.after != 0 {
				t.Errorf("after a stamp %d are left from %s, again after %v", len(p.stamps), p.stamps[0].pod, p.after)
			}
		})
	})
}

// An event of a workload between the reads of a reconcile has the owners found again, and so does a read that failed.
func TestOwnersAreFoundAgain(t *testing.T) {
	target := pub.Target{Group: "apps", Kind: "Deployment", Name: "web"}
	b, _ := pub.Read(newObject("web"))
	b.Target, b.Selector = &target, nil
	none := func() ([]corev1.Pod, error) { return nil, nil }
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	follow := func(tr *tracker, in scope) {
		t.Helper()
		if _, err := tr.follow(b, in, none); err != nil {
			t.Fatal(err)
		}
	}
	owned := scope{generation: 1, owners: []types.UID{"1"}}
	cases := map[string]struct {
		why  string
		then func(*tracker)
		at   time.Time
		want bool
	}{
		"nothing":  {"the owners are known", func(*tracker) {}, noon(), false},
		"an event": {"the target has changed", func(tr *tracker) { tr.touched("shop", target) }, noon(), true},
		"of another": {
			why:  "the total does not depend on it",
			then: func(tr *tracker) { tr.touched("shop", pub.Target{Kind: "Deployment"}) },
			at:   noon(),
		},
		"of another namespace": {
			why: "the total does not depend on it", then: func(tr *tracker) { tr.touched("other", target) }, at: noon(),
		},
		"a failure": {"the read is repeated", func(tr *tracker) { tr.failed(name) }, noon(), true},
		"an event meanwhile": {"what was read may be old", func(tr *tracker) {
			tr.failed(name)
			tr.expect(b, noon())
			tr.touched("shop", target)
			follow(tr, scope{generation: 1})
		}, noon(), true},
		"no events": {
			why:  "nothing reports a change of such a target",
			then: func(tr *tracker) { follow(tr, scope{generation: 1, until: noon().Add(time.Minute)}) },
			at:   noon().Add(time.Minute),
			want: true,
		},
		"no events, too early": {
			why:  "once a minute is enough",
			then: func(tr *tracker) { follow(tr, scope{generation: 1, until: noon().Add(time.Minute)}) },
			at:   noon(),
		},
	}
	for label, c := range cases {
		t.Run(label, func(t *testing.T) {
			tr := &tracker{}
			if !tr.expect(b, noon()) {
				t.Fatal("the owners of a new budget are known")
			}
			follow(tr, owned)
			c.then(tr)
			if got := tr.expect(b, c.at); got != c.want {
				t.Errorf("%s: found again is %v", c.why, got)
			}
		})
	}
	t.Run("pods that cannot be listed", func(t *testing.T) {
		tr, failed := &tracker{}, errors.New("no cache")
		tr.expect(b, noon())
		if _, err := tr.follow(b, owned, func() ([]corev1.Pod, error) {
			return nil, failed
		}); !errors.Is(err, failed) || !tr.expect(b, noon()) {
			t.Errorf("the budget counts as followed, %v", err)
		}
	})
	t.Run("a budget that is dropped", func(t *testing.T) {
		tr := &tracker{}
		tr.expect(b, noon())
		tr.drop(name)
		follow(tr, owned)
		if len(tr.namespaces) != 0 {
			t.Errorf("%v is kept", tr.namespaces)
		}
	})
}

// The notes of a budget are in the pass, with what cannot be read first.
func TestNotes(t *testing.T) {
	tr := &tracker{}
	s, _ := following(t, tr, newObject("web"))
	s.notes = append(s.notes, must(pub.Read(newObject("web", func(o *podUnavailableBudget) {
		o.Spec.MaxUnavailable = ptr.To(intstr.FromString("many"))
	})))...)
	tr.with(s.key(), func(b *tracked) {
		p := plan(s, b, tr.namespaces["shop"], noon())
		var codes []string
		for _, n := range p.notes {
			codes = append(codes, n.Code)
		}
		if got := strings.Join(codes, " "); got != pub.NoteUnreadable+" "+pub.NoteNoPods {
			t.Errorf("notes %s", got)
		}
	})
}

func must[A, B any](_ A, b B) B { return b }

// BenchmarkPodEvent counts an event of a pod of 10,000, and one of a namespace without budgets.
func BenchmarkPodEvent(b *testing.B) {
	tr := &tracker{}
	object, _ := pub.Read(newObject("web"))
	tr.expect(object, noon())
	pods := make([]corev1.Pod, 10000)
	for i := range pods {
		pods[i] = *newPod(fmt.Sprint("web-", i), stampedWith("web"))
	}
	if _, err := tr.follow(object, scope{generation: 1, selector: object.Selector}, func() ([]corev1.Pod, error) {
		return pods, nil
	}); err != nil {
		b.Fatal(err)
	}
	down := newPod("web-5", stampedWith("web"), unready)
	elsewhere := newPod("web-5", func(p *corev1.Pod) { p.Namespace = "other" })
	b.Run("guarded", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			pod := down
			if i%2 == 0 {
				pod = &pods[5]
			}
			tr.set(pod)
		}
	})
	b.Run("elsewhere", func(b *testing.B) {
		for b.Loop() {
			tr.set(elsewhere)
		}
	})
}

// The budgets of one namespace cannot fill the memory by counting the same pods again and again.
func TestManyBudgetsOverTheSamePods(t *testing.T) {
	tr := &tracker{}
	pods := make([]corev1.Pod, 1000)
	for i := range pods {
		pods[i] = *newPod(fmt.Sprint("web-", i))
	}
	lists := 0
	follow := func(namespace, name string) error {
		b, _ := pub.Read(newObject(name))
		b.Namespace = namespace
		tr.expect(b, noon())
		_, err := tr.follow(b, scope{generation: 1, selector: b.Selector}, func() ([]corev1.Pod, error) {
			lists++
			return pods, nil
		})
		return err
	}
	for i := range maxMembers / len(pods) {
		if err := follow("shop", fmt.Sprint("web-", i)); err != nil {
			t.Fatalf("budget %d: %v", i, err)
		}
	}
	before := lists
	if err := follow("shop", "more"); !errors.Is(err, errCrowded) || lists != before {
		t.Errorf("one budget more: %v, listed %d times", err, lists-before)
	}
	if err := follow("other", "web"); err != nil {
		t.Errorf("a budget of another namespace: %v", err)
	}
	tr.drop(types.NamespacedName{Namespace: "shop", Name: "web-0"})
	if err := follow("shop", "more"); err != nil {
		t.Errorf("after one budget less: %v", err)
	}
}

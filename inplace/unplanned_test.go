package inplace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// TestUnplannedRestartsProperty updates the images of a pod again and again while its containers crash, and counts
// exactly the crashes, at every moment. A crash between the write and the restart that it causes is that restart.
func TestUnplannedRestartsProperty(t *testing.T) {
	r := newRand(t)
	crashed, updated := int32(0), 0
	for range 400 / fewer() {
		pod := running(template(
			container("c1", "app:0"), container("c2x", "app:0", launch(1)), container("c3", "app:0"),
		), "r-0")
		k, err := start(pod, r.IntN(2) == 0, "")
		if err != nil {
			t.Fatal(err)
		}
		u := inplace.Update{}
		for now := noon(); now.Before(noon().Add(150 * time.Second)); now = now.Add(time.Second) {
			i := r.IntN(3)
			switch r.IntN(4) {
			case 0:
				if _, err := k.sync(i, now); err != nil {
					t.Fatal(err)
				}
			case 1:
				if r.IntN(3) == 0 {
					if err := k.crash(i, now); err != nil {
						t.Fatal(err)
					}
				}
			default:
				u.Pod = k.pod
				a, err := inplace.Next(u, inplace.Policy{RecordRestarts: true}, now)
				if err != nil {
					t.Fatal(err)
				}
				if a.Verdict == inplace.Write {
					k.pod = applied(t, k.pod, a)
				}
				if a.Verdict == inplace.Complete {
					updated++
					next := fmt.Sprintf("app:%d", updated)
					u.Revision, u.Change = next, &inplace.Change{Images: map[string]string{}}
					for _, name := range []string{"c1", "c2x", "c3"} {
						if r.IntN(2) == 0 {
							u.Change.Images[name] = next
						}
					}
				}
			}
			if err := k.tell(true); err != nil {
				t.Fatal(err)
			}
			var want []inplace.Restart
			for _, name := range []string{"c1", "c2x", "c3"} {
				if n := k.crashes[name]; n > 0 {
					want = append(want, inplace.Restart{Container: name, Count: n})
				}
			}
			got, err := inplace.UnplannedRestarts(k.pod, nil)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Fatalf("(-want +got):\n%s%v\n%s", d, err, encoded(t, k.pod))
			}
		}
		for _, n := range k.crashes {
			crashed += n
		}
	}
	if t.Logf("%d crashes, %d updates", crashed, updated); crashed < 800/int32(fewer()) || updated < 800/fewer() {
		t.Errorf("want more crashes than %d, more updates than %d", crashed, updated)
	}
}

func TestUnplannedRestarts(t *testing.T) {
	cases := map[string]struct {
		record string
		counts [2]int32
		want   []inplace.Restart
	}{
		"no record: without an update all count": {
			counts: [2]int32{2, 1},
			want:   []inplace.Restart{{Container: "c1", Count: 2}, {Container: "i1", Count: 1}},
		},
		"before: those before the update stay": {
			record: `{"c1":{"unplanned":2,"through":3}}`, counts: [2]int32{3, 0},
			want: []inplace.Restart{{Container: "c1", Count: 2}},
		},
		"reset: those before stay where the node counts again from zero": {
			record: `{"c1":{"unplanned":2,"through":9}}`,
			counts: [2]int32{1, 0}, want: []inplace.Restart{{Container: "c1", Count: 2}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(withInit(), "web-1")
			pod.Annotations = map[string]string{kruise.PlannedRestartsKey: c.record}
			pod.Status.ContainerStatuses[0].RestartCount = c.counts[0]
			pod.Status.InitContainerStatuses[0].RestartCount = c.counts[1]
			got, err := inplace.UnplannedRestarts(pod, nil)
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("(-want +got):\n%s%v", d, err)
			}
		})
	}
}

// TestPlannedRestarts records what is written, by the counts at that time.
func TestPlannedRestarts(t *testing.T) {
	first := template(container("c1", "app:1", requests("cpu", "1"), restartsOn("cpu")), container("c2", "app:1"))
	resize := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Requests = amounts("cpu", "2") }
	cases := map[string]struct {
		record string
		pod    func(*corev1.Pod)
		to     *corev1.PodTemplateSpec
		want   string
	}{
		"unreadable: it must not hold up the update": {
			record: `{`, to: with(first, image(1, "app:2")),
			want: `{"c2":{"through":1}}`,
		},
		"second: the restart of the last update is explained": {
			record: `{"c1":{"unplanned":1,"through":3}}`,
			to:     with(first, image(0, "app:2")), want: `{"c1":{"unplanned":2,"through":5}}`,
		},
		"never happened: what a completed update did not need is no longer explained": {
			record: `{"c1":{"through":7}}`,
			to:     with(first, image(0, "app:2")), want: `{"c1":{"through":5}}`,
		},
		"of the writes that the node has not done, it may do one before the last": {
			record: `{"c1":{"through":9}}`,
			to:     with(first, image(0, "app:2")), want: `{"c1":{"through":6}}`,
			pod: func(p *corev1.Pod) {
				p.Spec.Containers[0].Image = "app:3"
				p.Annotations[kruise.InPlaceUpdateStateKey] = oneImage
			},
		},
		"resize to come: one restart for the resize, and one for the image": {
			to:   with(first, resize, image(0, "app:2")),
			pod:  func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts("cpu", "2") },
			want: `{"c1":{"unplanned":4,"through":6}}`,
		},
		"resized: the last restart was that of the resize": {
			to: with(first, resize),
			pod: func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = amounts("cpu", "2")
				p.Status.ContainerStatuses[0].Resources.Requests = amounts("cpu", "2")
			},
			want: `{"c1":{"unplanned":3,"through":4}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(first, "web-1")
			pod.Annotations = map[string]string{kruise.PlannedRestartsKey: c.record}
			pod.Status.ContainerStatuses[0].RestartCount = 4
			if c.pod != nil {
				c.pod(pod)
			}
			u := inplace.Update{Pod: pod, Change: diff(t, first, c.to), Revision: "web-2"}
			policy := everything()
			policy.RecordRestarts = true
			for range 2 {
				a, err := inplace.Next(u, policy, noon())
				if err != nil {
					t.Fatal(err)
				}
				if a.Step != inplace.StepNotReady && a.Step != inplace.StepChange {
					t.Fatalf("got %s", a.Step)
				}
				if u.Pod = applied(t, u.Pod, a); a.Step == inplace.StepChange {
					break
				}
			}
			if got := u.Pod.Annotations[kruise.PlannedRestartsKey]; got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
		})
	}
}

func TestUnplannedRestartsUnreadable(t *testing.T) {
	pod := running(withInit(), "web-1")
	pod.Annotations = map[string]string{kruise.PlannedRestartsKey: "{"}
	_, err := inplace.UnplannedRestarts(pod, nil)
	if err == nil || !strings.Contains(err.Error(), kruise.PlannedRestartsKey) {
		t.Errorf("got %v", err)
	}
}

func ExampleUnplannedRestarts() {
	pod := webPod()
	pod.Annotations[kruise.PlannedRestartsKey] = `{"main":{"through":1}}` // an update restarts the container once
	for count := range int32(3) {
		pod.Status.ContainerStatuses[0].RestartCount = count
		restarts, err := inplace.UnplannedRestarts(pod, nil)
		fmt.Println(count, restarts, err)
	}
	// Output:
	// 0 [] <nil>
	// 1 [] <nil>
	// 2 [{main 1}] <nil>
}

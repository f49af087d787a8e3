package inplace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// lead updates a pod, and between two writes the node does what was written. It gives the pod after each write of
// the pod itself.
func lead(t *testing.T, pod *corev1.Pod, c *inplace.Change, r inplace.Policy) []*corev1.Pod {
	t.Helper()
	var after []*corev1.Pod
	for range 20 {
		a, err := inplace.Next(inplace.Update{Pod: pod, Change: c, Revision: "web-2"}, r, noon())
		if err != nil {
			t.Fatal(err)
		}
		if a.Verdict != inplace.Write {
			if a.Verdict != inplace.Complete {
				t.Fatalf("want it done, got %v", a)
			}
			return after
		}
		pod = applied(t, pod, a)
		if a.Write.Subresource == write.Main {
			after = append(after, pod.DeepCopy())
		}
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Image != pod.Status.ContainerStatuses[i].Image {
				restart(pod, i)
			}
			pod.Status.ContainerStatuses[i].Resources = pod.Spec.Containers[i].Resources.DeepCopy()
		}
		daemon(t, nil)(pod)
	}
	t.Fatal("it does not end")
	return nil
}

// TestBatches: containers of higher priority come first, and those that one label feeds come together.
func TestBatches(t *testing.T) {
	four := template(container("c1", "app:1", launch(20)), container("c2", "app:1", launch(10)),
		container("c3", "app:1", launch(0)), container("c4", "app:1", launch(0)))
	inverse := template(container("c1", "app:1", launch(0)), container("c2", "app:1", launch(10)),
		container("c3", "app:1", launch(20)))
	plain := template(container("c1", "app:1"), container("c2", "app:1"), container("c3", "app:1"),
		container("c4", "app:1"))
	feed := func(key string, at ...int) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			for _, i := range at {
				fed("FED", key)(&p.Spec.Containers[i])
			}
		}
	}
	barrier := func(f func(*corev1.EnvVar)) *corev1.PodTemplateSpec {
		return with(four, func(p *corev1.PodTemplateSpec) { f(&p.Spec.Containers[0].Env[0]) })
	}
	three := []func(*corev1.PodTemplateSpec){image(0, "app:2"), image(1, "app:2"), image(3, "app:2")}
	cases := map[string]struct {
		from   *corev1.PodTemplateSpec
		change []func(*corev1.PodTemplateSpec)
		want   [][]string
	}{
		"three priorities: one after the other, highest first": {
			from: four, change: three, want: [][]string{{"c1"}, {"c2"}, {"c4"}},
		},
		"shared label: a label is written once, so all that it feeds go together": {
			from:   with(four, feed("metadata.labels['conf']", 1, 2)),
			change: append([]func(*corev1.PodTemplateSpec){label("conf", "2")}, three...),
			want:   [][]string{{"c1"}, {"c2", "c3"}, {"c4"}},
		},
		"shared in a chain: who joins brings others": {
			from:   with(four, feed("metadata.labels['a']", 0, 1), feed("metadata.annotations['b']", 1, 2)),
			change: []func(*corev1.PodTemplateSpec){label("a", "1"), annotate("b", "1"), image(0, "app:2")},
			want:   [][]string{{"c1", "c2", "c3"}},
		},
		"shared in a chain against the order of names: each that joins may bring one before it": {
			from:   with(inverse, feed("metadata.labels['a']", 1, 2), feed("metadata.annotations['b']", 0, 1)),
			change: []func(*corev1.PodTemplateSpec){label("a", "1"), annotate("b", "1"), image(2, "app:2")},
			want:   [][]string{{"c1", "c2", "c3"}},
		},
		"no priority: they need no order": {
			from:   plain,
			change: []func(*corev1.PodTemplateSpec){image(0, "app:2"), image(1, "app:2"), label("a", "1")},
			want:   [][]string{{"c1", "c2"}},
		},
		"priority and none: a container without priority goes with the first": {
			from: template(container("c1", "app:1", launch(5)), container("c2", "app:1"),
				container("c3", "app:1", launch(-1))),
			change: []func(*corev1.PodTemplateSpec){image(0, "app:2"), image(1, "app:2"), image(2, "app:2")},
			want:   [][]string{{"c1", "c2"}, {"c3"}},
		},
		"resources: a batch of resources alone is one as well": {
			from: with(four, func(p *corev1.PodTemplateSpec) { requests("cpu", "1")(&p.Spec.Containers[1]) }),
			change: []func(*corev1.PodTemplateSpec){image(0, "app:2"), func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[1].Resources.Requests = amounts("cpu", "2")
			}},
			want: [][]string{{"c1"}, {"c2"}},
		},
		"odd key: what is no number counts as 0": {
			from:   barrier(func(e *corev1.EnvVar) { e.ValueFrom.ConfigMapKeyRef.Key = "p_x" }),
			change: three,
			want:   [][]string{{"c2"}, {"c1", "c4"}},
		},
		"no source: the name is taken": {
			from:   barrier(func(e *corev1.EnvVar) { e.ValueFrom = nil }),
			change: three,
			want:   [][]string{{"c2"}, {"c1", "c4"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			to := with(tc.from, tc.change...)
			after := lead(t, running(tc.from, "web-1"), diff(t, tc.from, to), inplace.Policy{})
			last := after[len(after)-1]
			s := stateOf(t, last)
			if d := cmp.Diff(tc.want, batches(s)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			for i, pod := range after {
				var required []string
				if p := stateOf(t, pod).PreCheckBeforeNext; p != nil {
					required = p.ContainersRequiredReady
				}
				if want := tc.want[i]; i < len(after)-1 && cmp.Diff(want, required) != "" || i == len(after)-1 && required != nil {
					t.Errorf("batch %d requires %v", i, required)
				}
			}
			if left, err := lacks(last, to, everything()); err != nil || !left.Empty() {
				t.Errorf("the pod lacks %v, %v", left, err)
			}
		})
	}
}

// TestLabelComesWithItsBatch: not before its containers are due.
func TestLabelComesWithItsBatch(t *testing.T) {
	from := template(container("c1", "app:1", launch(2)),
		container("c2", "app:1", launch(1), fed("FED", "metadata.labels['conf']")))
	to := with(from, image(0, "app:2"), label("conf", "2"), label("plain", "1"))
	after := lead(t, running(from, "web-1"), diff(t, from, to), inplace.Policy{})
	if len(after) != 2 || after[0].Labels["conf"] != "" || after[1].Labels["conf"] != "2" {
		t.Errorf("want the label with the second batch, got %d", len(after))
	}
	if after[0].Labels["plain"] != "1" {
		t.Error("want metadata that feeds no container with the first batch")
	}
	want := `{"c2":{"labels":{"conf":"2"}}}`
	if got := jsonOf(stateOf(t, after[0]).NextContainerRefMetadata); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// TestNextBatch: the next batch may need the one before, so it waits until that one runs and is ready.
func TestNextBatch(t *testing.T) {
	from := template(container("c1", "app:1", launch(2)), container("c2", "app:1", launch(1)))
	to := with(from, image(0, "app:2"), image(1, "app:2"))
	cases := map[string]struct {
		node func(*corev1.Pod)
		want string
	}{
		"same image ID: the first batch is not done": {node: func(*corev1.Pod) {}, want: "Wait 10m0s InPlaceImage"},
		"not ready: the first batch is not ready": {node: func(p *corev1.Pod) {
			restart(p, 0)
			p.Status.ContainerStatuses[0].Ready = false
		}, want: "Wait 10m0s InPlaceBatch"},
		"ready: the next may come": {node: func(p *corev1.Pod) { restart(p, 0) }, want: "Write "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(from, "web-1")
			for range 2 {
				a, err := inplace.Next(inplace.Update{Pod: pod, Change: diff(t, from, to), Revision: "web-2"},
					inplace.Policy{}, noon())
				if err != nil {
					t.Fatal(err)
				}
				pod = applied(t, pod, a)
			}
			tc.node(pod)
			a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
			if got := told(a, err); got != tc.want {
				t.Fatalf("want %s, got %s", tc.want, got)
			}
			if a.Verdict != inplace.Write {
				s := stateOf(t, pod)
				if d := cmp.Diff([][]string{{"c1"}}, batches(s)); d != "" || s.NextContainerImages["c2"] != "app:2" {
					t.Errorf("got %+v", s)
				}
				return
			}
			next := stateOf(t, applied(t, pod, a))
			if len(next.LastContainerStatuses) != 2 || next.LastContainerStatuses["c1"].ImageID != "id-of-app:1" {
				t.Errorf("want what ran before of both, got %v", next.LastContainerStatuses)
			}
		})
	}
}

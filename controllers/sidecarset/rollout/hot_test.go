package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// pair gives a pod's two containers images, and says which works. A container whose name is in broken is not ready.
func pair(first, second, works, broken string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i, image := range []string{first, second} {
			p.Spec.Containers[i].Image = image
			restart(p, p.Spec.Containers[i].Name)
		}
		p.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] = `{"other":"other-1","x":"` + works + `"}`
		for name := range strings.FieldsSeq(broken) {
			failed(p, name)
		}
		readied(p)
	}
}

// written tells what of a write is of hot upgrades.
func written(c *rollout.Change) []string {
	var all []string
	images, annotations := imagesOf(c), annotationsOf(c)
	for _, name := range slices.Sorted(maps.Keys(images)) {
		all = append(all, name+"="+images[name])
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		for prefix, name := range map[string]string{
			kruise.SidecarSetVersionKeyPrefix:              "version ",
			kruise.SidecarSetVersionAltKeyPrefix:           "alt ",
			kruise.SidecarSetWorkingHotUpgradeContainerKey: "working ",
		} {
			if container, ok := strings.CutPrefix(key, prefix); ok {
				all = append(all, strings.TrimSpace(name+container)+" "+annotations[key])
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestHotUpgrade(t *testing.T) {
	cases := map[string]struct {
		why  string
		pod  func(*corev1.Pod)
		to   string
		want []string
	}{
		"the second is empty": {
			"it gets the image", pair("x:1", "empty:1", "x-1", ""), "x:2",
			[]string{"alt x-1 200", "version x-2 200", "working {\"other\":\"other-1\",\"x\":\"x-2\"}", "x-2=x:2"},
		},
		"the first is empty": {
			"it gets the image", pair("empty:1", "x:1", "x-2", ""), "x:2",
			[]string{"alt x-2 200", "version x-1 200", "working {\"other\":\"other-1\",\"x\":\"x-1\"}", "x-1=x:2"},
		},
		"the new one is broken": {
			"it gets another image and goes on working", pair("x:1", "x:2", "x-2", "x-2"), "x:3",
			[]string{"alt x-1 200", "version x-2 200", "x-2=x:3"},
		},
		"both are broken": {
			"the one that does not work", pair("x:1", "x:2", "x-2", "x-1 x-2"), "x:3",
			[]string{"alt x-2 200", "version x-1 200", "working {\"other\":\"other-1\",\"x\":\"x-1\"}", "x-1=x:3"},
		},
		"the way back from a broken one": {
			"what runs goes on, what does not is done with", pair("x:1", "x:2", "x-2", "x-2"), "x:1",
			[]string{"working {\"other\":\"other-1\",\"x\":\"x-1\"}", "x-2=empty:1"},
		},
		"the way back from both broken": {
			"the old one gets its turn again", pair("x:1", "x:2", "x-2", "x-1 x-2"), "x:1",
			[]string{"alt x-2 200", "version x-1 200", "working {\"other\":\"other-1\",\"x\":\"x-1\"}"},
		},
		"there already": {"what works is right", pair("x:2", "empty:1", "x-1", ""), "x:2", nil},
		"an odd record": {
			"the empty one cannot be what works", pair("empty:1", "x:2", "x-1", ""), "x:2",
			[]string{"alt x-2 0", "version x-1 0", "working {\"other\":\"other-1\",\"x\":\"x-2\"}"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := sidecarSet("s", hot("x", "x:1"))
			pod := podOf("a", before)
			c.pod(pod)
			pod.Annotations[kruise.SidecarSetHashKey] = `{"s":"another"}`
			plan := compute(t,
				input(edited(before, image("x:9"), func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Image = c.to }), pod))
			// Where the end of an upgrade comes first it is no part of this table.
			if len(plan.Updates) != 1 {
				t.Fatalf("no update: %v", plan.Notes)
			}
			got := written(plan.Updates[0])
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestFlip(t *testing.T) {
	set := sidecarSet("s", hot("x", "x:2"), hot("y", "y:2"))
	begin := func(p *corev1.Pod) {
		p.Spec.Containers[1].Image = "x:2" // x-2; y has nothing to end
		restart(p, "x-2")
		p.Spec.Containers[0].Image = "x:1"
		restart(p, "x-1")
		p.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] = `{"x":"x-2","y":"y-1"}`
		readied(p)
	}
	end := []string{"alt x-2 0", "version x-1 0", "x-1=empty:1"}
	cases := map[string]struct {
		why    string
		change setChange
		pod    func(*corev1.Pod)
		want   []string
	}{
		"ready":                 {"the new one works", nil, func(*corev1.Pod) {}, end},
		"the old one is broken": {"nobody misses it", nil, func(p *corev1.Pod) { failed(p, "x-1"); readied(p) }, end},
		"the new one is broken": {"the old one is needed", nil, func(p *corev1.Pod) { failed(p, "x-2"); readied(p) }, nil},
		"another is broken": {
			why: "the pod is not ready, for whatever reason", pod: func(p *corev1.Pod) { failed(p, "main"); readied(p) },
		},
		"the new one does not run yet": {"what is ready is from before", nil, func(p *corev1.Pod) {
			p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"s":{"revision":"x","updateTimestamp":null,"lastContainerStatuses":{"x-2":{"imageID":"sha256:x:2"}}}}`
			p.Status.ContainerStatuses[1].Image = "docker.io/library/empty:1"
		}, nil},
		"paused":        {"two at work are no state to stay in", paused, func(*corev1.Pod) {}, end},
		"not to update": {"neither", notUpdate, func(*corev1.Pod) {}, end},
		"an odd record": {"what is said to work is the empty one", nil, func(p *corev1.Pod) {
			p.Spec.Containers[1].Image = "empty:1"
			restart(p, "x-2")
		}, nil},
		"no empty image": {"there is nothing to put in its place", func(s *v1beta1.SidecarSet) {
			s.Spec.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = ""
		}, func(*corev1.Pod) {}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf("a", set)
			begin(pod)
			c.pod(pod)
			given := set
			if c.change != nil {
				given = edited(set, c.change)
			}
			if !rollout.Switching(set, pod) {
				t.Error("the upgrade is in its middle")
			}
			plan := compute(t, input(given, pod))
			var got []string
			for _, w := range plan.Resets {
				got = append(got, written(w)...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if len(plan.Resets) == 1 && rollout.Switching(set, applied(plan.Resets[0])) {
				t.Error("after its end it is over")
			}
			if len(plan.Resets)+len(plan.Updates) > 1 {
				t.Errorf("one pod is written %d times", len(plan.Resets)+len(plan.Updates))
			}
		})
	}
}

// TestMatched: pods that lack half of a pair, or the record of what works, have not got the set.
func TestMatched(t *testing.T) {
	set := sidecarSet("s", hot("x", "x:1"))
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   int32
	}{
		"whole":     {func(*corev1.Pod) {}, 1},
		"half":      {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:] }, 0},
		"no record": {func(p *corev1.Pod) { delete(p.Annotations, kruise.SidecarSetWorkingHotUpgradeContainerKey) }, 0},
		"no entry": {
			func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] = `{"y":"y-1"}` }, 0,
		},
		"no JSON": {func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] = `x-1` }, 0},
		"null":    {func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] = `null` }, 0},
		"an odd name": {
			func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey] = `{"x":"?"}` }, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf("a", set)
			c.change(pod)
			if got := compute(t, input(set, pod)).Status.MatchedPods; got != c.want {
				t.Errorf("want %d, got %d", c.want, got)
			}
		})
	}
}

// TestConsistent: whether a ready pod runs the images that its spec has shows in the number of ready pods.
func TestConsistent(t *testing.T) {
	const digest, other = "@sha256:1111", "@sha256:2222"
	state := func(last string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = fmt.Sprintf(
				`{"s":{"revision":"x","updateTimestamp":null,"lastContainerStatuses":{"mesh":%s}}}`, last)
		}
	}
	status := func(image, id string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Image, p.Status.ContainerStatuses[0].ImageID = image, id
		}
	}
	cases := map[string]struct {
		why    string
		image  string
		change []func(*corev1.Pod)
		want   int32
	}{
		"never updated": {
			why:    "the kubelet will have run it",
			image:  "mesh:1",
			change: []func(*corev1.Pod){status("whatever", "sha256:0")},
			want:   1,
		},
		"restarted": {"another image runs", "mesh:1", []func(*corev1.Pod){state(`{"imageID":"sha256:0"}`)}, 1},
		"not restarted": {
			why:    "the one from before runs",
			image:  "mesh:1",
			change: []func(*corev1.Pod){state(`{"imageID":"sha256:0"}`), status("mesh:0", "sha256:0")},
		},
		"one image, two tags": {
			why:    "the new tag is reported",
			image:  "mesh:1",
			change: []func(*corev1.Pod){state(`{"imageID":"sha256:0"}`), status("docker.io/library/mesh:1", "sha256:0")},
			want:   1,
		},
		"the same, another name": {
			why:    "the container is another one",
			image:  "mesh:1",
			change: []func(*corev1.Pod){state(`{"imageID":"sha256:0","containerID":"x"}`), status("mesh:0", "sha256:0")},
			want:   1,
		},
		"nothing ran": {"and something does now", "mesh:1", []func(*corev1.Pod){state(`{}`)}, 1},
		"nothing is reported": {
			why:    "between the old and the new",
			image:  "mesh:1",
			change: []func(*corev1.Pod){state(`{"imageID":"sha256:0"}`), status("", "")},
		},
		"unreadable": {
			why:    "the cause is unknown",
			image:  "mesh:1",
			change: []func(*corev1.Pod){func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = "?" }},
		},
		"another's state": {
			why:   "it tells nothing of this set",
			image: "mesh:1",
			change: []func(*corev1.Pod){func(p *corev1.Pod) {
				p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"z":{}}`
			}},
			want: 1,
		},
		"an empty state": {
			why:   "it tells nothing",
			image: "mesh:1",
			change: []func(*corev1.Pod){func(p *corev1.Pod) {
				p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"s":null}`
			}},
			want: 1,
		},
		"digest": {"it runs", "mesh" + digest, nil, 1},
		"digest and tag": {
			why:    "the tag does not matter",
			image:  "mesh:1" + digest,
			change: []func(*corev1.Pod){status("", "docker-pullable://mesh"+digest)},
			want:   1,
		},
		"another digest": {
			why: "it does not", image: "mesh" + digest, change: []func(*corev1.Pod){status("", "docker.io/library/mesh"+other)},
		},
		"another repository": {
			why: "it does not", image: "mesh" + digest, change: []func(*corev1.Pod){status("", "example.com/mesh"+digest)},
		},
		"a status is missing": {
			why:    "not all is known",
			image:  "mesh:1",
			change: []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1] }},
		},
		"not ready": {
			why:    "it does not serve",
			image:  "mesh:1",
			change: []func(*corev1.Pod){func(p *corev1.Pod) { failed(p, "main"); readied(p) }},
		},
		"not running": {
			why:    "it does not serve",
			image:  "mesh:1",
			change: []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := sidecarSet("s", cold("mesh", c.image))
			pod := podOf("a", set)
			for _, change := range c.change {
				change(pod)
			}
			if got := compute(t, input(set, pod)).Status.ReadyPods; got != c.want {
				t.Errorf("%s: want %d, got %d", c.why, c.want, got)
			}
		})
	}
}

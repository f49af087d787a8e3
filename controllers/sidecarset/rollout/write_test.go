package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// only one write comes out of these plans.
func oneUpdate(t *testing.T, in rollout.Input) *rollout.Change {
	t.Helper()
	plan := compute(t, in)
	if len(plan.Updates) != 1 {
		t.Fatalf("want one update, got %d (%v)", len(plan.Updates), plan.Notes)
	}
	return plan.Updates[0]
}

func TestUpdateAnnotations(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"), cold("agent", "agent:1"))
	newMesh := func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Image = "mesh:2" }
	entry := func(hash string) string {
		return `{"updateTimestamp":"2026-11-21T12:00:00Z","hash":"` + hash +
			`","sidecarSetName":"s","sidecarList":["agent","mesh"],"controllerRevision":"s-1"}`
	}
	state := func(hash, last string) string {
		return `{"revision":"` + hash + `","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{` + last + `}}`
	}
	last := func(name string) string {
		return `"` + name + `":{"imageID":"sha256:` + name + `:1","containerID":"containerd://` + name + `-0"}`
	}
	const hashes, states = kruise.SidecarSetHashKey, kruise.SidecarSetInPlaceUpdateStateKey
	cases := map[string]struct {
		why    string
		change []setChange
		pod    func(*corev1.Pod)
		want   func(hash string) map[string]string
		images map[string]string
	}{
		"one image": {
			why:    "the state does not have the other container",
			change: []setChange{newMesh},
			images: map[string]string{"mesh": "mesh:2"},
			want: func(h string) map[string]string {
				return map[string]string{hashes: `{"s":` + entry(h) + `}`, states: `{"s":` + state(h, last("mesh")) + `}`}
			},
		},
		"right already": {
			why:    "the pod only does not say so",
			change: []setChange{newMesh},
			pod:    func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mesh:2" },
			images: map[string]string{},
			want: func(h string) map[string]string {
				return map[string]string{hashes: `{"s":` + entry(h) + `}`, states: `{"s":` + state(h, "") + `}`}
			},
		},
		"not started yet": {
			why:    "nothing ran in it",
			change: []setChange{newMesh},
			pod:    func(p *corev1.Pod) { p.Status.ContainerStatuses = nil; failed(p, "main"); readied(p) },
			images: map[string]string{"mesh": "mesh:2"},
			want: func(h string) map[string]string {
				return map[string]string{hashes: `{"s":` + entry(h) + `}`, states: `{"s":` + state(h, `"mesh":{}`) + `}`}
			},
		},
		"others": {
			why:    "old formats are read, other sets keep what they wrote",
			change: []setChange{newMesh},
			images: map[string]string{"mesh": "mesh:2"},
			pod: func(p *corev1.Pod) {
				p.Annotations[hashes] = `{"s":"old","z":"legacy"}`
				p.Annotations[states] = `{"s":{"revision":"old","updateTimestamp":"2020-01-01T00:00:00Z","lastContainerStatuses":{"agent":{"imageID":"x"}}},"z":{"odd":1}}`
			},
			want: func(h string) map[string]string {
				return map[string]string{
					hashes: `{"s":` + entry(h) +
						`,"z":{"updateTimestamp":null,"hash":"legacy","sidecarSetName":"z","sidecarList":null}}`,
					states: `{"s":` + state(h, `"agent":{"imageID":"x"},`+last("mesh")) + `,"z":{"odd":1}}`,
				}
			},
		},

		"an unreadable state": {
			why: "it is no use to anybody", change: []setChange{newMesh}, images: map[string]string{"mesh": "mesh:2"},
			pod: func(p *corev1.Pod) { p.Annotations[states] = `{`; failed(p, "mesh"); failed(p, "agent"); readied(p) },
			want: func(h string) map[string]string {
				return map[string]string{hashes: `{"s":` + entry(h) + `}`, states: `{"s":` + state(h, last("mesh")) + `}`}
			},
		},
		"metadata": {
			why: "as at an injection", images: map[string]string{"mesh": "mesh:2"},
			change: []setChange{
				newMesh, patches(v1beta1.SidecarSetRetainPatchPolicy, "has", "set"),
				patches(v1beta1.SidecarSetRetainPatchPolicy, "lacks", "set"),
				patches(v1beta1.SidecarSetOverwritePatchPolicy, "over", "set"),
				patches(v1beta1.SidecarSetMergePatchJsonPatchPolicy, "json", `{"a":1}`),
			},
			pod: func(p *corev1.Pod) {
				maps.Copy(p.Annotations, map[string]string{"has": "pod", "over": "pod", "json": `{"b":2}`})
			},
			want: func(h string) map[string]string {
				return map[string]string{
					hashes: `{"s":` + entry(h) + `}`, states: `{"s":` + state(h, last("mesh")) + `}`,
					"lacks": "set", "over": "set", "json": `{"a":1,"b":2}`,
				}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set, pod := edited(before, c.change...), podOf("a", before)
			if c.pod != nil {
				c.pod(pod)
			}
			got := oneUpdate(t, input(set, pod))
			if diff := cmp.Diff(c.want(set.Annotations[kruise.SidecarSetHashKey]), annotationsOf(got)); diff != "" {
				t.Errorf("%s: annotations (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(c.images, imagesOf(got)); diff != "" {
				t.Errorf("%s: images (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// TestUnreadable: a pod that cannot be read is reported, and keeps no other from its turn.
func TestUnreadable(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	for name, change := range map[string]func(*corev1.Pod, *v1beta1.SidecarSet){
		"hash":     func(p *corev1.Pod, _ *v1beta1.SidecarSet) { p.Annotations[kruise.SidecarSetHashKey] = `{"s":` },
		"an entry": func(p *corev1.Pod, _ *v1beta1.SidecarSet) { p.Annotations[kruise.SidecarSetHashKey] = `{"s":[]}` },
		"another's entry": func(p *corev1.Pod, _ *v1beta1.SidecarSet) {
			p.Annotations[kruise.SidecarSetHashKey] = `{"s":"old","z":[]}`
		},
		"metadata": func(p *corev1.Pod, s *v1beta1.SidecarSet) {
			p.Annotations["k"] = "no JSON"
			patches(v1beta1.SidecarSetMergePatchJsonPatchPolicy, "k", `{"a":1}`)(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := podOf("a", before), podOf("b", before)
			set := edited(before, image("mesh:2"))
			change(first, set)
			pass, err := rollout.Plan(input(set, first, second))
			plan := pass.Result()
			if got := updated(plan); !cmp.Equal(got, []string{"b"}) {
				t.Errorf("want b updated, got %v", got)
			}
			if err == nil || !strings.Contains(err.Error(), "default/a") ||
				!slices.Contains(codes(plan.Notes), rollout.NoteUnreadable) {
				t.Errorf("want an error of pod a, got %v and notes %v", err, plan.Notes)
			}
		})
	}
}

// TestTests: a change is of what was seen of the pod, whatever else has changed.
func TestTests(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	set := edited(before, image("mesh:2"), patches(v1beta1.SidecarSetOverwritePatchPolicy, "a/b~c", "new"))
	stale := edited(before, env)
	pod := podOf("a", before)
	pod.ResourceVersion, pod.Annotations["a/b~c"] = "5", "old"
	marked := pod.DeepCopy()
	setCondition(marked, corev1.PodCondition{
		Type:    kruise.SidecarSetUpgradable,
		Status:  corev1.ConditionTrue,
		Reason:  kruise.SidecarSetUpgradableReasonAll,
		Message: `{"s":true}`,
	})
	update := oneUpdate(t, input(set, pod))
	mark, first := compute(t, input(stale, marked)).Marks[0], compute(t, input(stale, pod)).Marks[0]
	for name, c := range map[string]struct {
		change *rollout.Change
		live   func(*corev1.Pod)
		want   bool
	}{
		"an update of the same pod": {update, func(*corev1.Pod) {}, true},
		"an update, and a status": {
			update, func(p *corev1.Pod) { p.ResourceVersion, p.Status.Phase = "6", corev1.PodFailed }, true,
		},
		"an update, and a foreign annotation": {update, func(p *corev1.Pod) { p.Annotations["kept"] = "y" }, true},
		"an update, and its annotation":       {update, func(p *corev1.Pod) { p.Annotations["a/b~c"] = "other" }, false},
		"an update, and a record": {
			update, func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetHashKey] = "{}" }, false,
		},
		"an update, and a removed annotation": {update, func(p *corev1.Pod) { delete(p.Annotations, "a/b~c") }, false},
		"an update, and an added annotation": {
			update, func(p *corev1.Pod) { p.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = "{}" }, false,
		},
		"an update, and an image": {
			update, func(p *corev1.Pod) { p.Spec.Containers[indexOf(p, "mesh")].Image = "mesh:3" }, false,
		},
		"an update, and another pod":  {update, func(p *corev1.Pod) { p.UID = "b" }, false},
		"a condition of the same pod": {mark, func(*corev1.Pod) {}, true},
		"a condition, and another one": {
			mark, func(p *corev1.Pod) { p.ResourceVersion = "6"; failed(p, "mesh"); readied(p) }, true,
		},
		"a condition, and its message": {mark, func(p *corev1.Pod) {
			lifecycle.ConditionOf(p, kruise.SidecarSetUpgradable).Message = `{"s":true,"z":true}`
		}, false},
		"a condition, and its status": {mark, func(p *corev1.Pod) {
			lifecycle.ConditionOf(p, kruise.SidecarSetUpgradable).Status = corev1.ConditionFalse
		}, false},
		"a condition, and another place":       {mark, func(p *corev1.Pod) { slices.Reverse(p.Status.Conditions) }, false},
		"a condition, and another pod":         {mark, func(p *corev1.Pod) { p.UID = "b" }, false},
		"the first condition of the same pod":  {first, func(*corev1.Pod) {}, true},
		"the first condition, and any write":   {first, func(p *corev1.Pod) { p.ResourceVersion = "6" }, false},
		"the first condition, and another pod": {first, func(p *corev1.Pod) { p.UID = "b" }, false},
	} {
		live := c.change.Pod.DeepCopy()
		c.live(live)
		if _, err := appliedTo(live, c.change); (err == nil) != c.want {
			t.Errorf("%s: applied: %v", name, err)
		}
	}
	if update.Type != types.JSONPatchType || update.Subresource != write.Main || mark.Type != types.JSONPatchType ||
		mark.Subresource != write.Status {
		t.Errorf("an update is a %s of %q, a condition a %s of %q",
			update.Type, update.Subresource, mark.Type, mark.Subresource)
	}
}

func TestMark(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	const yes, no = "True AllSidecarsetUpgradable ", "False UpdateImmutableField "
	cases := map[string]struct {
		why string
		// status and message that the pod has; none if both are empty.
		status  corev1.ConditionStatus
		message string
		change  setChange
		state   bool
		want    string
		blocks  bool
	}{
		"stuck":           {why: "no pass has reported it", change: env, want: no + `{"s":false}`, blocks: true},
		"stuck as before": {why: "it is said", change: env, status: "False", message: `{"s":false}`},
		"stuck now": {
			why: "it was not before", change: env, status: "True", message: `{"s":true}`, want: no + `{"s":false}`, blocks: true,
		},
		"another is stuck": {
			why:     "both have to be upgradable",
			change:  image("mesh:2"),
			status:  "False",
			message: `{"z":false}`,
			want:    no + `{"s":true,"z":false}`,
		},
		"updated":       {why: "it tells so", change: image("mesh:2"), want: yes + `{"s":true}`},
		"updated again": {why: "it is said", change: image("mesh:2"), status: "True", message: `{"s":true}`},
		"changed back": {
			why:     "it has what the set wants again",
			change:  func(*v1beta1.SidecarSet) {},
			status:  "False",
			message: `{"s":false}`,
			want:    yes + `{"s":true}`,
		},
		"never updated": {why: "there is nothing to tell", change: func(*v1beta1.SidecarSet) {}},
		"not reported": {
			why:    "the process died after the update",
			change: func(*v1beta1.SidecarSet) {},
			state:  true,
			want:   yes + `{"s":true}`,
		},
		"a message of no use": {
			why: "it is written again", change: env, status: "False", message: `?`, want: no + `{"s":false}`, blocks: true,
		},
		"a message of nothing": {
			why: "it is written again", change: env, status: "False", message: `null`, want: no + `{"s":false}`, blocks: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf("a", before)
			if c.status != "" {
				reason := kruise.SidecarSetUpgradableReasonAll
				if c.status == corev1.ConditionFalse {
					reason = kruise.SidecarSetUpgradableReasonImmutableField
				}
				setCondition(pod, corev1.PodCondition{
					Type: kruise.SidecarSetUpgradable, Status: c.status, Reason: reason, Message: c.message,
				})
			}
			if c.state {
				pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"s":{"revision":"x","updateTimestamp":null,"lastContainerStatuses":{}}}`
			}
			pass, err := rollout.Plan(input(edited(before, c.change), pod))
			if err != nil {
				t.Fatal(err)
			}
			marks := pass.Result().Marks
			for _, update := range pass.Result().Updates {
				marks = append(marks, pass.Answer(noon(), update, applied(update), nil)...)
			}
			switch {
			case len(marks) == 0 && c.want == "":
			case len(marks) != 1:
				t.Fatalf("%s: %d conditions", c.why, len(marks))
			default:
				after := applied(marks[0])
				if got := upgradable(after); got != c.want || marks[0].Blocks != c.blocks {
					t.Errorf("%s: want %s (blocks: %t), got %s (%t)", c.why, c.want, c.blocks, got, marks[0].Blocks)
				}
				is := lifecycle.ConditionOf(after, kruise.SidecarSetUpgradable)
				if changed := is.Status != c.status; changed != is.LastTransitionTime.Time.Equal(noon()) {
					t.Errorf("the status changed: %t, since %s", changed, is.LastTransitionTime)
				}
			}
		})
	}
}

// TestWithoutWebhook: a set without hashes is hashed.
func TestWithoutWebhook(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	set, bare := edited(before, image("mesh:2")), edited(before, image("mesh:2"))
	bare.Annotations = nil
	if diff := cmp.Diff(compute(t, input(set, podOf("a", before))),
		compute(t, input(bare, podOf("a", before)))); diff != "" {
		t.Errorf("(-hashed +not hashed):\n%s", diff)
	}
}

func indexOf(pod *corev1.Pod, name string) int {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if at < 0 {
		panic(fmt.Sprintf("pod %s has no container %s", pod.Name, name))
	}
	return at
}

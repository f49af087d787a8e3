package simulation

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

func set(says string, change func(*spec)) deed {
	return deed{says: says, do: func(w *world) { w.server.setSpec(change) }}
}

// in waits only for some ticks, whatever is under way then.
func (d deed) in(ticks int) deed {
	d.after = ticks
	return d
}

// and does something else at the same time.
func (d deed) and(do func(*world)) deed {
	first := d.do
	d.do = func(w *world) { first(w); do(w) }
	return d
}

func wants(version string) deed {
	return set("wants "+version, func(s *spec) {
		s.Template.Annotations, s.Template.Spec.Containers = templateOf(version).Annotations, templateOf(version).Spec.Containers
	})
}

func partition(at string) deed {
	return set("sets the partition to "+at, func(s *spec) { s.Partition = at })
}

func choose(name string) deed {
	return deed{says: "asks for " + name + " to be deleted", do: func(w *world) { w.server.choose(name, w.check) }}
}

// stories by the name of their file.
func stories() map[string]story {
	all := map[string]story{}
	for _, some := range []map[string]story{inPlaceStories(), recreateStories(), partitionStories(), overtakingStories(), hookStories(), shapeStories()} {
		maps.Copy(all, some)
	}
	return all
}

// of is a shop that updates some pods at a time.
func of(replicas int32, maxUnavailable string) spec {
	return spec{Replicas: replicas, Template: templateOf("v1"), MaxUnavailable: maxUnavailable}
}

func (s spec) with(change func(*spec)) spec {
	s.Template = *s.Template.DeepCopy()
	change(&s)
	return s
}

func inPlaceStories() map[string]story {
	return map[string]story{
		"in-place": {
			shows: "A new image goes into the pods one by one. Each takes four writes: out of traffic, the change, back into\ntraffic, and the label of its state.",
			spec:  of(3, "1"), writes: 4,
			then: []deed{wants("v2")},
		},
		"in-place-two-at-a-time": {
			shows: "Of five pods two may be unavailable at once: the next goes as soon as one is back. The others in the world\ntake their time here, each another one.", lives: true,
			spec: of(5, "40%"), settings: settings{delay: 4, slow: 1}, writes: 4,
			then: []deed{wants("v2")},
		},
		"in-place-same-image": {
			shows: "The new image is the old one under another name: nothing but the restart tells that the node has done it.", lives: true,
			spec: of(2, "1"), writes: 4,
			then: []deed{wants("v1'")},
		},
		"in-place-metadata": {
			shows: "A label changes, and no container: one write, while the pod stays in traffic. The second one is the label of\nits state.",
			spec:  of(2, "1"),
			then: []deed{set("wants another label", func(s *spec) {
				s.Template = templateOf("v1")
				s.Template.Labels["team"] = "toys"
			})},
		},
		"in-place-environment": {
			shows: "A label changes that feeds a variable. The daemon of the node restarts the container for it, once the pod is out\nof traffic, and tells when it runs with the new value.",
			spec:  spec{Replicas: 2, Template: fed(templateOf("v1"), "low"), MaxUnavailable: "1"}, settings: settings{daemon: true}, writes: 4,
			then: []deed{set("wants level high", func(s *spec) {
				s.Template = fed(templateOf("v2"), "high")
				s.Template.Spec.Containers[0].Image = "shop:v1"
			})},
		},
		"controller-dies": {
			shows: "The controller dies when a pod is out of traffic and not changed yet. The next process knows nothing of it, puts\nthe pod back, and begins again. TestDeath has it die at every write of many stories.", lives: true,
			spec: of(2, "1"),
			then: []deed{wants("v2").and(func(w *world) { w.dies.at, w.dies.after = w.writes+2, true })},
		},
		"old-reads": {
			shows: "What the controller reads is older than what there is. It waits until it sees its own writes, so that\nnothing is done twice, and lets no more pods be unavailable than if it saw everything at once.", lives: true,
			spec: of(3, "1"), settings: settings{lag: 4, delay: 2}, writes: 4,
			then: []deed{wants("v2")},
		},
		"grace-period": {
			shows: "Between leaving traffic and the change ten seconds pass, which makes one more write: the pod carries the change\nuntil then, and no process has to remember it.",
			spec:  of(2, "1").with(func(s *spec) { s.GraceSeconds = 10 }), writes: 5,
			then: []deed{wants("v2")},
		},
		"grace-period-taken-back": {
			shows: "The user takes an update back while all pods wait for the end of their grace period. No container restarts: what\nwaits is dropped, and the pods go back into traffic.",
			spec:  of(3, "3").with(func(s *spec) { s.GraceSeconds = 10 }),
			then:  []deed{wants("v2"), wants("v1").in(5)},
		},
		"min-ready-seconds": {
			shows: "A pod counts only after it was ready for five seconds; nothing happens in the meantime that would wake\nthe controller, but for the time that the plan gave.", lives: true,
			spec: of(2, "1").with(func(s *spec) { s.MinReadySeconds = 5 }), writes: 4,
			then: []deed{wants("v2")},
		},
		"paused": {
			shows: "A rollout is paused: what has begun goes on to its end, nothing else begins. Then it is resumed.",
			spec:  of(4, "1"), writes: 4,
			then: []deed{
				wants("v2"),
				set("pauses", func(s *spec) { s.Paused = true }).in(3),
				set("resumes", func(s *spec) { s.Paused = false }).in(15),
			},
		},
	}
}

func recreateStories() map[string]story {
	env := set("wants v2 with another variable", func(s *spec) { s.Template = withEnv(templateOf("v2"), "high") })
	return map[string]story{
		"recreate": {
			shows: "A variable changes, which no running container can take: pods are deleted within the budget, and come back new.",
			spec:  of(3, "1"),
			then:  []deed{env},
		},
		"surge": {
			shows: "Pods are recreated while none may be missing: one more is made first, and the last one too many goes in the end.",
			spec:  of(3, "0").with(func(s *spec) { s.MaxSurge = "1" }),
			then:  []deed{env},
		},
		"surge-in-place": {
			shows: "An update in place with a surge: one more pod is made, and of the others one at a time is updated.", lives: true,
			spec: of(3, "0").with(func(s *spec) { s.MaxSurge = "1" }), writes: 4,
			then: []deed{wants("v2")},
		},
		"specified-delete": {
			shows: "The user asks for a pod to be deleted, and no pod may be missing: another one is made first.",
			spec:  of(3, "0").with(func(s *spec) { s.MaxSurge = "1" }),
			then:  []deed{choose("shop-b")},
		},
		"scale-during-rollout": {
			shows: "While a rollout is under way the user scales out, and in again. New pods are born at the new revision, and old\nones are the first to go.",
			spec:  of(4, "1"), settings: settings{delay: 3},
			then: []deed{
				wants("v2"),
				set("scales out to 6", func(s *spec) { s.Replicas = 6 }).in(4),
				set("scales in to 3", func(s *spec) { s.Replicas = 3 }).in(6),
			},
		},
	}
}

func partitionStories() map[string]story {
	return map[string]story{
		"partition": {
			shows: "A partition of 60% keeps three of five pods; then the user lets all of them go.", lives: true,
			spec: of(5, "1").with(func(s *spec) { s.Partition = "60%" }), writes: 4,
			then: []deed{wants("v2"), partition("0")},
		},
		"partition-raised": {
			shows: "All but one pod are updated when the user has second thoughts: two of them go back.",
			spec:  of(4, "1").with(func(s *spec) { s.Partition = "1" }), writes: 4,
			then: []deed{wants("v2"), partition("3"), partition("0")},
		},
	}
}

func overtakingStories() map[string]story {
	return map[string]story{
		"never-ready": {
			shows: "The new revision is broken: the rollout stops with the one pod that may be unavailable, and says so.", lives: true,
			spec: of(4, "1"), stands: "UpdateLimited",
			then: []deed{wants("broken")},
		},
		"never-ready-fixed": {
			shows: "A broken revision, and one whose image does not exist, are overtaken by one that works: the broken pod is the\nfirst to get it.",
			spec:  of(4, "1"),
			then:  []deed{wants("broken"), wants("missing").in(12), wants("v2").in(12)},
		},
		"never-ready-while-scaling-out": {
			shows: "A broken revision, and a user who wants no more than one pod to come up at a time: the pod that is there never\nbecomes ready, so that no other is made; as they are missing, no pod may be updated, not even the broken one.\nOnly the user can get out of it, here by more patience with pods that come up.",
			spec:  of(3, "1").with(func(s *spec) { s.MaxUnavailableScaling, s.Template = 1, templateOf("broken") }),
			then: []deed{
				wants("v2").in(20),
				set("lets two come up at a time", func(s *spec) { s.MaxUnavailableScaling = 2 }).in(100),
			},
		},
		"overtaken": {
			shows: "v3 overtakes v2 in the middle of the rollout, also in a pod whose update has not ended: it goes on from where it\nis, and the pods that still have v1 never see v2.",
			spec:  of(4, "2"), settings: settings{delay: 3},
			then: []deed{wants("v2"), wants("v3").in(4)},
		},
		"taken-back": {
			shows: "The user takes v2 back in the middle of the rollout: v1 becomes the newest revision again, under its old name.",
			spec:  of(4, "2"), settings: settings{delay: 3},
			then: []deed{wants("v2"), wants("v1").in(4)},
		},
		"crash-before-update": {
			shows: "A container has crashed and is about to start again, with its old image, when the update comes. That start looks\nlike the one that the update waits for, so that the pod is put back too early; its node does not let it be ready\nbefore the new image runs.", lives: true,
			spec: of(2, "1"), settings: settings{delay: 6},
			then: []deed{
				{says: "sees a crash", do: func(w *world) { w.nodes.crash(w.server.pod("shop-a")) }},
				wants("v2").in(1),
			},
		},
		"recreate-overtaken": {
			shows: "While pods are recreated for v2 the user wants v3: pods that are on their way out are not missed, and no pod is\nmade at v2 any more.",
			spec:  of(4, "2"), settings: settings{delay: 2, end: 3},
			then: []deed{
				set("wants v2 with another variable", func(s *spec) { s.Template = withEnv(templateOf("v2"), "high") }),
				set("wants v3 with another variable", func(s *spec) { s.Template = withEnv(templateOf("v3"), "higher") }).in(6),
			},
		},
	}
}

func hookStories() map[string]story {
	drain := &kruise.LifecycleHook{LabelsHandler: map[string]string{"hook": "drain"}}
	before := func(hooks *kruise.Lifecycle, hook *kruise.LifecycleHook) func(*spec) {
		return func(s *spec) { s.Hooks, s.Template = hooks, hooked(s.Template, hook) }
	}
	marked := &kruise.LifecycleHook{LabelsHandler: map[string]string{"hook": "drain"}, MarkPodNotReady: true}
	finalizer := &kruise.LifecycleHook{FinalizersHandler: []string{"shop/drain"}}
	return map[string]story{
		"hook-update": {
			shows: "A hook holds each pod before its update until its owner lets it go, and after it until the owner takes it back.\nThe owner takes five seconds for either.",
			spec:  of(2, "1").with(before(&kruise.Lifecycle{InPlaceUpdate: drain}, drain)), settings: settings{hook: 5},
			then: []deed{wants("v2")},
		},
		"hook-update-not-ready": {
			shows: "The hook also takes the pod out of traffic while it holds it.",
			spec: of(2, "1").with(before(&kruise.Lifecycle{InPlaceUpdate: marked}, marked)).with(func(s *spec) {
				s.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
			}), settings: settings{hook: 3},
			then: []deed{wants("v2")},
		},
		"hook-update-taken-back": {
			shows: "While a hook holds a pod before its update, the user takes the update back: the pod becomes normal as it is.", lives: true,
			spec: of(2, "1").with(before(&kruise.Lifecycle{InPlaceUpdate: drain}, drain)), settings: settings{hook: 20},
			then: []deed{wants("v2"), wants("v1").in(6)},
		},
		"hook-update-taken-back-not-ready": {
			shows: "The same with a hook that takes the pod out of traffic: it goes back into traffic.",
			spec: of(2, "1").with(before(&kruise.Lifecycle{InPlaceUpdate: marked}, marked)).with(func(s *spec) {
				s.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
			}), settings: settings{hook: 20},
			then: []deed{wants("v2"), wants("v1").in(6)},
		},
		"hook-update-partition-raised": {
			shows: "The partition is raised, so that an updated pod has to go back, and a hook holds it before that.",
			spec:  of(3, "1").with(before(&kruise.Lifecycle{InPlaceUpdate: drain}, drain)).with(func(s *spec) { s.Partition = "1" }), settings: settings{hook: 5},
			then: []deed{wants("v2"), partition("2"), partition("0")},
		},
		"hook-delete": {
			shows: "A hook, here a finalizer, holds pods before they are deleted, and not after that.",
			spec:  of(3, "1").with(before(&kruise.Lifecycle{PreDelete: finalizer}, finalizer)), settings: settings{hook: 5},
			then: []deed{set("scales in to 2", func(s *spec) { s.Replicas = 2 })},
		},
		"hook-delete-restored": {
			shows: "A pod that a hook holds before its deletion is wanted again: it stays.",
			spec:  of(3, "1").with(before(&kruise.Lifecycle{PreDelete: drain}, drain)), settings: settings{hook: 20},
			then: []deed{
				set("scales in to 2", func(s *spec) { s.Replicas = 2 }),
				set("scales out to 3", func(s *spec) { s.Replicas = 3 }).in(6),
			},
		},
	}
}

func shapeStories() map[string]story {
	env := set("wants v2 with another variable", func(s *spec) { s.Template = withEnv(templateOf("v2"), "high") })
	groups := of(2, "1").with(func(s *spec) { s.Size = 3 })
	slots := of(4, "1").with(func(s *spec) { s.Slots = true })
	ordered := slots.with(func(s *spec) { s.InOrder = true })
	return map[string]story{
		"groups": {
			shows: "Groups of a leader and two workers are updated in place as one: all pods of a group, one group at a time.",
			spec:  groups, writes: 4,
			then: []deed{wants("v2")},
		},
		"groups-recreate": {
			shows: "Groups of a leader and two workers are recreated as one.",
			spec:  groups,
			then:  []deed{env},
		},
		"slots": {
			shows: "Pods with places of their own are updated in place, from the last to the first; the partition keeps the first one.",
			spec:  slots.with(func(s *spec) { s.Partition = "1" }), writes: 4,
			then: []deed{wants("v2"), partition("0")},
		},
		"slots-in-order": {
			shows: "Places are filled one after the other, and recreated from the last to the first; then two of them are given up.",
			spec:  ordered, settings: settings{end: 2},
			then: []deed{env, set("scales in to 2", func(s *spec) { s.Replicas = 2 })},
		},
	}
}

package cloneset_test

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// stories by the name of their file.
func stories() map[string]story {
	all := map[string]story{}
	for _, some := range []map[string]story{
		inPlaceStories(), recreateStories(), partitionStories(), overtakingStories(), updateHookStories(), otherHookStories(),
	} {
		maps.Copy(all, some)
	}
	return all
}

func inPlaceStories() map[string]story {
	return map[string]story{
		"in-place": {
			shows: "A new image goes into the pods one by one. Each takes four writes: out of traffic, the change, back\n" +
				"into traffic, and the label of its state.",
			set: shop(3, "1"), writes: 4,
			then: []deed{wants("v2")},
		},
		"in-place-two-at-a-time": {
			shows: "Of five pods two may be unavailable at once: the next one changes as soon as one is back. Scheduler\n" +
				"and nodes take their time here.",
			alike: true,
			set:   shop(5, "40%"), settings: settings{delay: 4, slow: 1}, writes: 4,
			then: []deed{wants("v2")},
		},
		"in-place-same-image": {
			shows: "The new image is the old one under another name: nothing but the restart shows that the node has run\n" +
				"it.",
			alike: true,
			set:   shop(2, "1"), writes: 4,
			then: []deed{wants("v1'")},
		},
		"in-place-metadata": {
			shows: "A label changes, and no container. CloneSet promises that each update takes the pod out of traffic.",
			set:   shop(2, "1"),
			then: []deed{sets("wants another label", of(templateOf("v1")), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Labels["team"] = "toys"
			})},
		},
		"in-place-environment": {
			shows: "A label changes that feeds a variable. The daemon of the node restarts the container for it, once\n" +
				"the pod is out of traffic, and reports when the container runs with the new value.",
			set: shop(2, "1", of(fed(templateOf("v1"), "low"))), settings: settings{daemon: true}, writes: 4,
			then: []deed{sets("wants level high", of(fed(templateOf("v2"), "high")), image("shop:v1"))},
		},
		"controller-dies": {
			shows: "The reconciler's process dies when a pod is out of traffic and not changed yet. The next process has\n" +
				"no memory of it, and finishes the update. TestDeath has the process die at each kind of write of the\n" +
				"other stories.",
			alike: true,
			set:   shop(2, "1"),
			then: []deed{wants("v2").and(func(w *world) {
				w.process.dies.at, w.process.dies.after = "status/shop-a#2", true
			})},
		},
		"old-reads": {
			shows: "What the reconciler reads is older than what the server holds. No write is made twice, and no more\n" +
				"pods are unavailable than if the reconciler read everything at once.",
			alike: true,
			set:   shop(3, "1"), settings: settings{lag: 4, delay: 2}, writes: 4,
			then: []deed{wants("v2")},
		},
		"grace-period": {
			shows: "Between leaving traffic and the change ten seconds pass, which takes one more write: the pod carries\n" +
				"the change until then, and no process has to remember it.",
			set: shop(2, "1", grace(10)), writes: 5,
			then: []deed{wants("v2")},
		},
		"grace-period-taken-back": {
			shows: "The user takes an update back while all pods wait for the end of their grace period. No container\n" +
				"restarts: what waits is dropped, and the pods go back into traffic.",
			set:  shop(3, "3", grace(10)),
			then: []deed{wants("v2"), wants("v1").in(5)},
		},
		"min-ready-seconds": {
			shows: "A pod counts only after it was ready for five seconds. Nothing happens in the meantime that wakes\n" +
				"the reconciler, but for the time of its own requeue.",
			alike: true,
			set:   shop(2, "1", func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 5 }), writes: 4,
			then: []deed{wants("v2")},
		},
		"paused": {
			shows: "A rollout is paused: updates that have begun are completed, and no other begins. Then it is resumed.",
			set:   shop(4, "1"), writes: 4,
			then: []deed{wants("v2"), sets("pauses", paused(true)).in(3), sets("resumes", paused(false)).in(15)},
		},
	}
}

func recreateStories() map[string]story {
	env := sets("wants v2 with another variable", of(withEnv(templateOf("v2"), "high")))
	return map[string]story{
		"recreate": {
			shows: "A variable changes, which no running container takes: pods are deleted within the budget, and\n" +
				"replaced.",
			set:  shop(3, "1"),
			then: []deed{env},
		},
		"surge": {
			shows: "Pods are recreated while none may be missing: one more is created first, and the last one too many\n" +
				"is deleted.",
			set:  shop(3, "0", withSurge("1")),
			then: []deed{env},
		},
		"surge-in-place": {
			shows: "An update in place with a surge: one more pod is created, and of the others one at a time is\n" +
				"updated.",
			alike: true,
			set:   shop(3, "0", withSurge("1")), writes: 4,
			then: []deed{wants("v2")},
		},
		"specified-delete": {
			shows: "The user chooses a pod for deletion, and no pod may be missing: another one is created first.",
			set:   shop(3, "0", withSurge("1")),
			then:  []deed{chooses("shop-b")},
		},
		"scale-during-rollout": {
			shows: "While a rollout is under way the user scales out, and in again. New pods are created at the new\n" +
				"revision, and old ones are the first to be deleted.",
			set: shop(4, "1"), settings: settings{delay: 3},
			then: []deed{wants("v2"), sets("scales out to 6", scaled(6)).in(4), sets("scales in to 3", scaled(3)).in(6)},
		},
	}
}

func partitionStories() map[string]story {
	return map[string]story{
		"partition": {
			shows: "A partition of 60% keeps three of five pods; then the user has all of them updated.", alike: true,
			set: shop(5, "1", atPartition("60%")), writes: 4,
			then: []deed{wants("v2"), setsPartition("0")},
		},
		"partition-raised": {
			shows: "All but one pod are updated when the user raises the partition: two of them go back.",
			set:   shop(4, "1", atPartition("1")), writes: 4,
			then: []deed{wants("v2"), setsPartition("3"), setsPartition("0")},
		},
	}
}

func overtakingStories() map[string]story {
	recreated := func(version, value string) deed {
		return sets("wants "+version+" with another variable", of(withEnv(templateOf(version), value)))
	}
	return map[string]story{
		"never-ready": {
			shows: "The new revision is broken: the rollout stops with the one pod that may be unavailable, and notes\n" +
				"why.",
			alike: true,
			set:   shop(4, "1"), stands: "UpdateLimited",
			then: []deed{wants("broken")},
		},
		"never-ready-fixed": {
			shows: "A broken revision, and one whose image does not exist, are overtaken by one that works: the broken\n" +
				"pod is the first to get it.",
			set:  shop(4, "1"),
			then: []deed{wants("broken"), wants("missing").in(12), wants("v2").in(12)},
		},
		"never-ready-while-scaling-out": {
			shows: "A broken revision, and a user who wants no more than one pod to come up at a time: the pod that\n" +
				"exists never becomes ready, so that no other is created; as they are missing, no pod may be updated,\n" +
				"not even the broken one. Only the user can end this, here with a larger limit.",
			set: shop(3, "1", of(templateOf("broken")), func(s *v1beta1.CloneSet) {
				s.Spec.ScaleStrategy.MaxUnavailable = amount("1")
			}),
			then: []deed{
				wants("v2").in(20),
				sets("lets two come up at a time", func(s *v1beta1.CloneSet) {
					s.Spec.ScaleStrategy.MaxUnavailable = amount("2")
				}).in(100),
			},
		},
		"overtaken": {
			shows: "v3 overtakes v2 in the middle of the rollout, also in a pod whose update is not complete: it goes on\n" +
				"from where it is, and the pods that still have v1 never get v2.",
			set: shop(4, "2"), settings: settings{delay: 3},
			then: []deed{wants("v2"), wants("v3").in(4)},
		},
		"taken-back": {
			shows: "The user takes v2 back in the middle of the rollout: v1 becomes the newest revision again, under its\n" +
				"old name.",
			set: shop(4, "2"), settings: settings{delay: 3},
			then: []deed{wants("v2"), wants("v1").in(4)},
		},
		"crash-before-update": {
			shows: "A container has crashed and is about to start again, with its old image, when the update comes. That\n" +
				"start looks like the one that the update waits for, so that the pod goes back too early; its node\n" +
				"does not let it be ready before the new image runs.",
			alike: true,
			set:   shop(2, "1"), settings: settings{delay: 6},
			then: []deed{
				{says: "sees a crash", do: func(w *world) { w.nodes.crash(w.live.pods["shop-a"]) }},
				wants("v2").in(1),
			},
		},
		"recreate-overtaken": {
			shows: "While pods are recreated for v2 the user wants v3: pods that terminate are not missed, and no more\n" +
				"pods are created at v2.",
			set: shop(4, "2"), settings: settings{delay: 2, end: 3},
			then: []deed{recreated("v2", "high"), recreated("v3", "higher").in(6)},
		},
	}
}

// drain is a hook by a label, and marked one that also takes pods out of traffic.
func drain() *kruise.LifecycleHook {
	return &kruise.LifecycleHook{LabelsHandler: map[string]string{hookLabel: "drain"}}
}

func marked() *kruise.LifecycleHook {
	return &kruise.LifecycleHook{LabelsHandler: map[string]string{hookLabel: "drain"}, MarkPodNotReady: true}
}

// withHook has pods that a hook holds from their creation.
func withHook(hooks kruise.Lifecycle, hook *kruise.LifecycleHook) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Lifecycle, s.Spec.Template = &hooks, hooked(s.Spec.Template, hook)
		if hook.MarkPodNotReady {
			gate := corev1.PodReadinessGate{ConditionType: kruise.KruisePodReadyConditionType}
			s.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{gate}
		}
	}
}

func updateHookStories() map[string]story {
	labelled, unready := kruise.Lifecycle{InPlaceUpdate: drain()}, kruise.Lifecycle{InPlaceUpdate: marked()}
	return map[string]story{
		"hook-update": {
			shows: "A hook holds each pod before its update until its owner releases the pod, and after the update until\n" +
				"the owner takes the pod back. The owner takes five seconds for either.",
			set: shop(2, "1", withHook(labelled, drain())), settings: settings{hookDelay: 5},
			then: []deed{wants("v2")},
		},
		"hook-update-not-ready": {
			shows: "The hook also takes the pod out of traffic while it holds it.",
			set:   shop(2, "1", withHook(unready, marked())), settings: settings{hookDelay: 3},
			then: []deed{wants("v2")},
		},
		"hook-update-taken-back": {
			shows: "While a hook holds a pod before its update, the user takes the update back: the pod becomes normal\n" +
				"as it is.",
			alike: true,
			set:   shop(2, "1", withHook(labelled, drain())), settings: settings{hookDelay: 20},
			then: []deed{wants("v2"), wants("v1").in(6)},
		},
		"hook-update-taken-back-not-ready": {
			shows: "The same with a hook that takes the pod out of traffic: it goes back into traffic.",
			set:   shop(2, "1", withHook(unready, marked())), settings: settings{hookDelay: 20},
			then: []deed{wants("v2"), wants("v1").in(6)},
		},
		"hook-update-partition-raised": {
			shows: "The partition is raised, so that an updated pod has to go back, and a hook holds it before that.",
			set:   shop(3, "1", withHook(labelled, drain()), atPartition("1")), settings: settings{hookDelay: 5},
			then: []deed{wants("v2"), setsPartition("2"), setsPartition("0")},
		},
	}
}

func otherHookStories() map[string]story {
	finalizer := &kruise.LifecycleHook{FinalizersHandler: []string{"shop/drain"}}
	scalesIn := sets("scales in to 2", func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(2)) })
	return map[string]story{
		"hook-delete": {
			shows: "A hook, here a finalizer, holds pods before they are deleted, and not after that.",
			set:   shop(3, "1", withHook(kruise.Lifecycle{PreDelete: finalizer}, finalizer)), settings: settings{hookDelay: 5},
			then: []deed{scalesIn},
		},
		"hook-delete-restored": {
			shows: "A pod that a hook holds before its deletion is wanted again: it stays.",
			set:   shop(3, "1", withHook(kruise.Lifecycle{PreDelete: drain()}, drain())), settings: settings{hookDelay: 20},
			then: []deed{scalesIn, sets("scales out to 3", scaled(3)).in(6)},
		},
		"hook-normal": {
			shows: "A hook holds new pods before they count, until its owner completes them.",
			set: shop(2, "1", func(s *v1beta1.CloneSet) {
				born := &kruise.LifecycleHook{LabelsHandler: map[string]string{"born": "yes"}}
				s.Spec.Lifecycle = &kruise.Lifecycle{PreNormal: born}
			}), settings: settings{hookDelay: 4},
			then: []deed{sets("scales out to 3", scaled(3))},
		},
	}
}

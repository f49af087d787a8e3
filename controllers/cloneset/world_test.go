package cloneset_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// world is a set with its reconciler, nodes, an owner of hooks and a user. The rules hold after each write.
type world struct {
	*model

	set     *v1beta1.CloneSet
	rand    *rand.Rand
	rules   *rules
	process *podbench.Process
	faults  *podbench.Chance
	// cache of the process shows one of the latest views, which are lag versions behind on the average.
	cache *apiserver.Lagging
	lag   int
	views []*apiserver.Server
	// hookDelay is how many steps the owner of hooks takes to answer, and since the first step in which it has seen a pod.
	hookDelay, steps int
	since            map[string]int
	// notes of the latest pass.
	notes []note.Note
}

func newWorld(t *testing.T, seed uint64, replicas int32, changes ...func(*v1beta1.CloneSet)) *world {
	t.Helper()
	w := &world{
		model: newModel(t, cloneset.Options{}), rand: rand.New(rand.NewPCG(seed, 1)), since: map[string]int{},
		faults: &podbench.Chance{Seed: seed},
	}
	w.cache = w.Server.Lagging()
	w.rules = newRules(w)
	w.Server.OnChange(w.rules.changed)
	ids := numbered()
	w.process = &podbench.Process{Server: w.cache, Start: func(c client.WithWatch) reconcile.Reconciler {
		w.cache.View = w.Server.Snapshot() // another process, which reads everything as it is
		w.rules.begin()
		return w.reconciler(cloneset.Options{
			NewID: ids, PartitionRollback: true,
			Explain: func(_ context.Context, _ types.NamespacedName, notes []note.Note) { w.notes = notes },
		}, podbench.Writes(c, w.faults.Do))
	}}
	w.Reconciler = reconcile.Func(w.pass)
	w.set = w.create("web", replicas, func(s *v1beta1.CloneSet) {
		inPlace(s)
		for _, change := range changes {
			change(s)
		}
	})
	return w
}

// pass is a pass of the process that lives, or of the next one.
func (w *world) pass(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	w.views = append(w.views, w.Server.Snapshot())
	w.views = w.views[max(0, len(w.views)-3*w.lag-1):]
	for _, view := range w.views {
		if w.lag == 0 || w.cache.View == nil || view.Version() > w.cache.View.Version() && w.rand.IntN(w.lag) == 0 {
			w.cache.View = view
			break
		}
	}
	w.rules.begin()
	defer w.rules.end()
	return w.process.Reconcile(ctx, request)
}

// step is a step of the nodes and of the owner of hooks, after which no rule is broken.
func (w *world) step() {
	w.Helper()
	w.RunPods()
	w.answerHooks()
	if len(w.rules.broken) > 0 {
		requests := w.Server.Requests()
		w.Fatalf("%s\n%s\nlatest requests:\n%s",
			w.rules.broken[0], w.picture(), strings.Join(requests[max(0, len(requests)-40):], "\n"))
	}
}

// answerHooks releases the pods that hooks hold, and takes them back.
func (w *world) answerHooks() {
	w.steps++
	hooks := w.set.Spec.Lifecycle
	if hooks == nil {
		return
	}
	w.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		state := lifecycle.StateOf(pod)
		key := string(pod.UID) + string(state)
		if _, seen := w.since[key]; !seen {
			w.since[key] = w.steps
		}
		if state == normal || state == updating || w.steps < w.since[key]+w.hookDelay {
			return pod
		}
		delete(w.since, key)
		after := pod.DeepCopy()
		for _, h := range []struct {
			hook     *kruise.LifecycleHook
			releases kruise.LifecycleState
			holds    kruise.LifecycleState
		}{
			{hooks.PreDelete, preparingDelete, ""},
			{hooks.InPlaceUpdate, preparingUpdate, kruise.LifecycleStateUpdated},
			{hooks.PreNormal, "", preparingNormal},
		} {
			for key, value := range ptr.Deref(h.hook, kruise.LifecycleHook{}).LabelsHandler {
				switch state {
				case h.releases:
					delete(after.Labels, key)
				case h.holds:
					after.Labels[key] = value
				}
			}
		}
		return after
	})
}

// picture is the pods in a few characters each: the id and the release of the image; a dash for not ready, a star for
// terminating, and a lifecycle state that is not Normal.
func (w *world) picture() string {
	w.Helper()
	var all []string
	for _, pod := range w.Pods() {
		_, release, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
		text := strings.TrimPrefix(pod.Name, "web-") + ":" + release
		switch state := lifecycle.StateOf(pod); {
		case pod.DeletionTimestamp != nil:
			text += "*"
		case conditionOf(pod, corev1.PodReady) != corev1.ConditionTrue:
			text += "-"
			fallthrough
		case state != normal:
			text += strings.TrimSuffix(" "+string(state), " "+string(normal))
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// conditionOf is empty where the pod has no such condition.
func conditionOf(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	return ptr.Deref(lifecycle.ConditionOf(pod, t), corev1.PodCondition{}).Status
}

// missing is what the set asks for and does not have; empty for nothing.
func (w *world) missing() string {
	w.Helper()
	w.look(w.set)
	l, pods, updated := limitsOf(w.set), w.Pods(), int32(0)
	if int32(len(pods)) != l.Replicas {
		return fmt.Sprintf("%d pods instead of %d", len(pods), l.Replicas)
	}
	want := l.Replicas - l.Partition
	for _, pod := range pods {
		if why := w.rules.unavailable(pod); why != "" {
			return pod.Name + " is not available: " + why
		}
		if pod.Labels[kruise.PodRevisionLabelKey] == w.set.Status.UpdateRevision {
			updated++
		}
	}
	s := w.set.Status
	if updated < want || s.CurrentRevision != s.UpdateRevision && updated != want {
		return fmt.Sprintf("%d pods are updated instead of %d", updated, want)
	}
	if s.ObservedGeneration != w.set.Generation || s.AvailableReplicas != l.Replicas || s.UpdatedReplicas < want {
		return fmt.Sprintf("the status reports %+v", s)
	}
	return ""
}

// settles runs until the set is as it asks for, and expects no request after that.
func (w *world) settles() {
	w.Helper()
	why := ""
	for range 600 {
		if why = w.missing(); why == "" && (w.Due.IsZero() || w.Due.After(w.Clock)) {
			break
		}
		w.Reconcile()
		w.step()
		w.Advance(time.Second)
	}
	if why != "" {
		w.Fatalf("%s: %s; notes %v", why, w.picture(), w.notes)
	}
	w.Still()
	w.Advance(workloads.StalledAfter) // the condition Stalled changes at most once more
	w.Idle()
	claims := len(w.set.Spec.VolumeClaimTemplates) * int(*w.set.Spec.Replicas)
	if own := w.claimsOf(w.set.UID); len(own) != claims {
		w.Fatalf("%d claims of the set, want %d: %v of %s", len(own), claims, own, w.picture())
	}
}

func hooked(hooks kruise.Lifecycle) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Lifecycle = &hooks
		for _, hook := range []*kruise.LifecycleHook{hooks.InPlaceUpdate, hooks.PreDelete} {
			maps.Copy(s.Spec.Template.Labels, ptr.Deref(hook, kruise.LifecycleHook{}).LabelsHandler)
		}
	}
}

func byLabel(key string) *kruise.LifecycleHook {
	return &kruise.LifecycleHook{LabelsHandler: map[string]string{key: "yes"}}
}

// mark marks a pod for deletion, within the budget.
func (w *world) mark(name string) {
	w.Helper()
	w.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}},
		fmt.Sprintf(`{"labels":{%q:"true"}}`, kruise.SpecifiedDeleteKey))
}

// any returns one of the pods that do not terminate; nil for none.
func (w *world) any() *corev1.Pod {
	pods := slices.DeleteFunc(w.Pods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(pods) == 0 {
		return nil
	}
	return pods[w.rand.IntN(len(pods))]
}

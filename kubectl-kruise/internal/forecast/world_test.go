package forecast_test

import (
	cmp "cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// worlds is how many are drawn. Each has its number for a seed, so that it can be run alone:
//
//	go test ./forecast -run TestRandom.*/seed=17 -v
var worlds = flag.Uint64("worlds", 25, "how many random worlds to run")

// world is a cluster in which a workload runs on nodes that take their time. A tick is a second. Its kubelet and its
// owner of hooks are others than those of the forecast.
type world struct {
	*model

	random *rand.Rand
	pace   forecast.Pace
	// uneven nodes take another time for each pod.
	uneven   bool
	minReady int32
	hooks    *kruise.Lifecycle
	// busy is when the node of a pod has done what it does, and what that is.
	busy  map[types.UID]time.Time
	doing map[types.UID]string
	// began are the ticks at which the updates of pods began, and lowest is how few pods were available.
	began  map[types.UID]time.Time
	before map[types.UID]*corev1.Pod
	lowest int32
}

// tick lets all components act, and a second pass.
func (w *world) tick() {
	for range 50 {
		version := w.Server.Version()
		w.Reconcile()
		w.Server.ChangePods(w.kubelet)
		w.Server.ChangePods(w.answer)
		w.observe()
		if w.Server.Version() == version {
			break
		}
	}
	available := int32(0)
	for _, pod := range w.Pods() {
		if is, _ := scale.Available(pod, w.minReady, w.Now()); is && pod.DeletionTimestamp == nil {
			available++
		}
	}
	w.lowest = min(w.lowest, available)
	w.Advance(time.Second)
}

// kubelet is what the node of a pod does.
func (w *world) kubelet(pod *corev1.Pod) *corev1.Pod {
	var what string
	took := w.pace.Restart
	switch {
	case pod.DeletionTimestamp != nil:
		what, took = "end", w.pace.End
	case len(pod.Status.ContainerStatuses) == 0:
		what, took = "start", w.pace.Start
	default:
		for _, c := range pod.Spec.Containers {
			what += " " + c.Image
		}
		if strings.Contains(pod.Spec.Containers[0].Image, ":broken") {
			what = "broken"
		}
	}
	if what == "start" && pod.Spec.NodeName == "" {
		pod = pod.DeepCopy()
		pod.Spec.NodeName = cmp.Or(eligible.NodeOf(pod), "n1")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}}
		if lifecycle.HasGate(pod, kruise.KruisePodReadyConditionType) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: kruise.KruisePodReadyConditionType, Status: corev1.ConditionTrue,
			})
		}
	}
	if w.doing[pod.UID] != what {
		w.doing[pod.UID] = what
		delay := time.Duration(took)
		if w.uneven {
			delay = time.Duration(1+w.random.IntN(7)) * time.Second
		}
		if _, ran := w.busy[pod.UID]; what != "start" && what != "end" && !ran {
			delay = 0
		}
		w.busy[pod.UID] = w.Now().Add(delay)
	}
	if w.Now().Before(w.busy[pod.UID]) {
		return stopped(pod)
	}
	if what == "end" {
		return nil
	}
	after := pod.DeepCopy()
	if w.Kubelet.Run(after) {
		return after
	}
	return pod
}

// stopped ends the containers of a pod whose images change.
func stopped(pod *corev1.Pod) *corev1.Pod {
	if pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) == 0 {
		return pod
	}
	pod = pod.DeepCopy()
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Image != pod.Spec.Containers[i].Image {
			c.Ready = false
		}
	}
	return pod
}

// answer is the owner of hooks.
func (w *world) answer(pod *corev1.Pod) *corev1.Pod {
	if w.hooks == nil {
		return pod
	}
	after := pod.DeepCopy()
	label := func(hook *kruise.LifecycleHook, want bool) {
		if hook == nil {
			return
		}
		for key, value := range hook.LabelsHandler {
			if delete(after.Labels, key); want {
				after.Labels[key] = value
			}
		}
	}
	switch state := lifecycle.StateOf(pod); {
	case pod.DeletionTimestamp != nil, state == kruise.LifecycleStatePreparingDelete:
		label(w.hooks.PreDelete, false)
	case state == kruise.LifecycleStatePreparingUpdate:
		label(w.hooks.InPlaceUpdate, false)
	case state == kruise.LifecycleStateUpdated:
		label(w.hooks.InPlaceUpdate, true)
	default:
		return pod
	}
	return after
}

// observe notes which updates and deletions have begun.
func (w *world) observe() {
	now := map[types.UID]*corev1.Pod{}
	for _, pod := range w.Pods() {
		now[pod.UID] = pod
	}
	for uid, was := range w.before {
		is := now[uid]
		if _, known := w.began[uid]; known || is != nil && sameSide(was, is) {
			continue
		}
		w.began[uid] = w.Now()
	}
}

// sameSide reports whether a pod is neither deleted nor updated, nor about to be.
func sameSide(was, is *corev1.Pod) bool {
	state := lifecycle.StateOf(is)
	return is.DeletionTimestamp == nil == (was.DeletionTimestamp == nil) &&
		is.Labels["controller-revision-hash"] == was.Labels["controller-revision-hash"] &&
		is.Labels[kruise.SpecifiedDeleteKey] == was.Labels[kruise.SpecifiedDeleteKey] &&
		(state == lifecycle.StateOf(was) || state != kruise.LifecycleStatePreparingDelete &&
			state != kruise.LifecycleStatePreparingUpdate)
}

// watch begins to note what happens to the pods.
func (w *world) watch() {
	w.before, w.began, w.lowest = map[types.UID]*corev1.Pod{}, map[types.UID]time.Time{}, 1<<30
	for _, pod := range w.Pods() {
		w.before[pod.UID] = pod
	}
}

// fates describes what became of the pods, in the words of dumb eyes: who is gone, which containers restarted.
func (w *world) fates() map[string]string { return happened(w.before, w.Pods()) }

func happened(before map[types.UID]*corev1.Pod, pods []*corev1.Pod) map[string]string {
	now, fates := map[types.UID]*corev1.Pod{}, map[string]string{}
	for _, pod := range pods {
		now[pod.UID] = pod
	}
	for uid, was := range before {
		is := now[uid]
		switch {
		case is == nil || is.DeletionTimestamp != nil:
			fates[was.Name] = "gone"
			continue
		case is.Labels["controller-revision-hash"] == was.Labels["controller-revision-hash"]:
			fates[was.Name] = "stays"
		default:
			fates[was.Name] = "in place"
		}
		for i, c := range is.Status.ContainerStatuses {
			if i < len(was.Status.ContainerStatuses) && c.ImageID != was.Status.ContainerStatuses[i].ImageID {
				fates[was.Name] += " " + c.Name
			}
		}
	}
	return fates
}

// fatesOf describes a forecast in the same words.
func fatesOf(f *forecast.Forecast) map[string]string {
	fates := map[string]string{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		switch pod.Fate {
		case forecast.Created:
			continue
		case forecast.Recreated, forecast.Deleted:
			fates[pod.Name] = "gone"
		default:
			if fates[pod.Name] = "stays"; pod.From != pod.To && pod.To != "" {
				fates[pod.Name] = "in place"
			}
		}
		for _, c := range pod.Containers {
			fates[pod.Name] += " " + c
		}
	}
	return fates
}

// batches are the names of the pods whose updates begin at the same tick, in order.
func (w *world) batches(since time.Time) []string {
	at := map[time.Time][]string{}
	for uid, when := range w.began {
		if w.before[uid].DeletionTimestamp != nil {
			continue // its deletion began before
		}
		at[when] = append(at[when], w.before[uid].Name)
	}
	var all []string
	for _, when := range slices.SortedFunc(maps.Keys(at), time.Time.Compare) {
		slices.Sort(at[when])
		all = append(all, fmt.Sprintf("%ds: %s", int(when.Sub(since).Seconds()), strings.Join(at[when], " ")))
	}
	return all
}

func batchesOf(f *forecast.Forecast) []string {
	var all []string
	for _, b := range f.Batches {
		pods := slices.Sorted(slices.Values(b.Pods))
		all = append(all, fmt.Sprintf("%ds: %s", int(time.Duration(b.At).Seconds()), strings.Join(pods, " ")))
	}
	return all
}

// rest runs until nothing has changed for a while.
func (w *world) rest(quiet int) {
	for still, ticks := 0, 0; still < quiet && ticks < 2000; ticks++ {
		version := w.Server.Version()
		if w.tick(); w.Server.Version() == version {
			still++
			continue
		}
		still = 0
	}
}

// inNumbers are how many pods have each fate.
func inNumbers(fates map[string]string) map[string]string {
	counts, numbers := map[string]int{}, map[string]string{}
	for _, fate := range fates {
		counts[fate]++
	}
	for fate, n := range counts {
		numbers[fate] = fmt.Sprint(n)
	}
	return numbers
}

// compareCounts compares what there is in the end, and returns how few pods are available in the forecast.
func (w *world) compareCounts(t *testing.T, f *forecast.Forecast) (lowest int32) {
	t.Helper()
	pods, available := int32(0), int32(0)
	for _, pod := range w.Pods() {
		if pod.DeletionTimestamp != nil {
			continue
		}
		pods++
		if is, _ := scale.Available(pod, w.minReady, w.Now()); is {
			available++
		}
	}
	end := f.Timeline[len(f.Timeline)-1]
	if end.Pods != pods || end.Available != available {
		t.Errorf("forecast %d pods, %d available; happened %d, %d", end.Pods, end.Available, pods, available)
	}
	lowest = 1 << 30
	for _, m := range f.Timeline {
		lowest = min(lowest, m.Available)
	}
	return lowest
}

package statefulset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// world is a set of which a user, nodes and faults do something at random at each turn.
type world struct {
	*model

	rand   *rand.Rand
	faults *podbench.Chance
	// cache of the process, and what that of the next one shows of the set at first.
	cache   *apiserver.Lagging
	earlier *apiserver.Server
	// began is the generation of the set when the process started.
	began int64

	set *v1beta1.StatefulSet
	// had are the names of all pods that ever were.
	had map[string]bool
}

// Whatever happens, the order, the partition and the budget hold at each turn, no retained claim is deleted, and the
// set settles once the faults end.
func TestRandom(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 60 {
				w.act()
				w.turn()
			}
			w.faults.Of = 0
			w.cache.Thaw()
			w.settle()
		})
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		model: newModel(t, Options{ExpandClaims: true}),
		rand:  rand.New(rand.NewPCG(seed, 1)),
		had:   map[string]bool{},
	}
	policies := []v1beta1.PersistentVolumeClaimRetentionPolicyType{keeps, deletes}
	changes := changes{withClaims(keeps, policies[w.rand.IntN(2)])}
	if w.offline = w.rand.IntN(2) == 0; w.rand.IntN(2) == 0 {
		changes = append(changes, func(s *v1beta1.StatefulSet) {
			s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
		})
	}
	if w.rand.IntN(2) == 0 {
		changes = append(changes, inPlace)
	}
	if w.rand.IntN(2) == 0 {
		changes = append(changes, parallel, maxUnavailable(1+w.rand.IntN(3)))
	}
	w.set = w.create("web", int32(w.rand.IntN(5)), changes...)
	w.faults = &podbench.Chance{Seed: seed, Of: 12}
	w.reboot()
	return w
}

// reboot starts another process, which has no memory, behind a client that fails at random, and whose cache may show an
// older set for a while.
func (w *world) reboot() {
	w.Helper()
	w.Look(w.set)
	w.cache, w.began = w.Behind(w.earlier), w.set.Generation
	if w.rand.IntN(2) == 0 {
		w.cache.Thaw()
	}
	w.restart(podbench.Writes(w.cache, w.faults.Do))
}

// act is what the user, a node or a fault does.
func (w *world) act() {
	w.Helper()
	pods := w.pods(w.set)
	switch w.rand.IntN(14) {
	case 0:
		w.change(w.set, scaled(int32(w.rand.IntN(6))))
	case 1:
		w.change(w.set, withImage(fmt.Sprint("web:", 1+w.rand.IntN(3))))
	case 2:
		w.change(w.set, partition(int32(w.rand.IntN(4))))
	case 3:
		reserved := intstr.FromInt32(int32(w.rand.IntN(4)))
		w.change(w.set, func(s *v1beta1.StatefulSet) { s.Spec.ReserveOrdinals = []intstr.IntOrString{reserved} })
	case 4:
		if len(pods) > 0 {
			w.delete(&pods[w.rand.IntN(len(pods))])
		}
	case 5:
		if len(pods) > 0 {
			w.edit(&pods[w.rand.IntN(len(pods))], `{"labels":{"apps.kruise.io/specified-delete":"true"}}`)
		}
	case 6:
		w.reboot()
	case 7:
		w.Advance(time.Minute)
	case 9:
		w.earlier = w.Server.Snapshot()
	case 10:
		w.cache.Thaw()
	case 8:
		w.change(w.set, sized(fmt.Sprint(1+w.rand.IntN(3), "Gi")))
	}
}

// turn is a pass, what must hold after it, and a step of the nodes and of the garbage collector.
func (w *world) turn() {
	w.Helper()
	w.Look(w.set)
	before := w.pods(w.set)
	w.Server.Requests()
	w.Reconcile()
	w.check(before, w.pods(w.set))
	w.checkBehind(before, w.pods(w.set))
	w.RunPods()
	w.CollectClaims()
	w.provision()
	w.checkClaims()
	w.Advance(time.Second)
}

// settle expects the set to get to what its spec asks for, without another fault.
func (w *world) settle() {
	w.Helper()
	for range 400 {
		w.Look(w.set)
		if n := *w.set.Spec.Replicas; w.done(n) {
			return
		}
		w.turn()
		w.Advance(10 * time.Second)
	}
	w.Errorf("not settled: pods %q, spec %d, status %+v", w.picture(w.set), *w.set.Spec.Replicas, w.set.Status)
}

func (w *world) done(n int32) bool {
	s, pods := w.set.Status, w.pods(w.set)
	kept := min(w.kept(), n)
	return s.ObservedGeneration == w.set.Generation && int32(len(pods)) == n && s.AvailableReplicas == n &&
		s.UpdatedReplicas >= n-kept && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return !w.window().Contains(ordinalOf(&pod)) || !w.fits(&pod)
	})
}

// fits reports whether the claim of a pod has grown as far as the template asks, where updates reach the pod and expand
// claims.
func (w *world) fits(pod *corev1.Pod) bool {
	rank, _ := w.window().Rank(ordinalOf(pod))
	if rank < w.kept() ||
		w.set.Spec.VolumeClaimUpdateStrategy.Type != v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType {
		return true
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-" + pod.Name}}
	w.Look(claim)
	wanted := w.set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
	return claim.Status.Capacity.Storage().Cmp(wanted) >= 0
}

func (w *world) window() ordinals.Window {
	reserved, err := ordinals.Parse(w.set.Spec.ReserveOrdinals)
	if err != nil {
		w.Fatal(err)
	}
	return ordinals.Window{Replicas: *w.set.Spec.Replicas, Reserved: reserved}
}

func (w *world) kept() int32 {
	if u := w.set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		return *u.Partition
	}
	return 0
}

// budget is how many slots may be unavailable.
func (w *world) budget() int {
	if u := w.set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.MaxUnavailable != nil {
		return u.MaxUnavailable.IntValue()
	}
	return 1
}

// check compares the pods before and after a pass. An older set may create pods that the user has not asked for, or not
// yet, and does no harm.
func (w *world) check(before, after []corev1.Pod) {
	w.Helper()
	window, ordered := w.window(), w.set.Spec.PodManagementPolicy != "Parallel"
	find := func(pods []corev1.Pod, ordinal int32) *corev1.Pod {
		for i := range pods {
			if ordinalOf(&pods[i]) == ordinal {
				return &pods[i]
			}
		}
		return nil
	}
	serves := func(pod *corev1.Pod) bool { return pod != nil && pod.DeletionTimestamp == nil && isReady(pod) }
	unavailable, disrupted := 0, 0
	for ordinal := range window.All() {
		was, is := find(before, ordinal), find(after, ordinal)
		if !serves(was) {
			unavailable++
		}
		changed := was != nil && is != nil && was.Spec.Containers[0].Image != is.Spec.Containers[0].Image
		if serves(was) && (is == nil || is.DeletionTimestamp != nil || changed) {
			disrupted++
		}
		rank, _ := window.Rank(ordinal)
		if is != nil && rank < w.kept() && changed {
			w.Errorf("pod %d is updated below the partition %d", ordinal, w.kept())
		}
		if created := was == nil && is != nil; created && ordered && !w.cache.IsFrozen() {
			for lower := range window.All() {
				if lower < ordinal && !serves(find(before, lower)) {
					w.Errorf("pod %d is created before pod %d is ready", ordinal, lower)
				}
			}
		}
	}
	if disrupted > max(0, w.budget()-unavailable) {
		w.Errorf("%d pods are disrupted beside %d unavailable ones, %d may be; window %v; requests %v",
			disrupted, unavailable, w.budget(), window, w.Server.Requests())
	}
	for i := range after {
		if w.cache.IsFrozen() {
			break
		}
		if ordinal := ordinalOf(&after[i]); find(before, ordinal) == nil && !window.Contains(ordinal) {
			w.Errorf("pod %d is created, and not wanted", ordinal)
		}
	}
}

// checkBehind expects that a set that is older than the stored one was when the process started deletes and updates no
// pod.
func (w *world) checkBehind(before, after []corev1.Pod) {
	w.Helper()
	older := &v1beta1.StatefulSet{}
	if err := w.cache.Get(w.Context(), client.ObjectKeyFromObject(w.set), older); err != nil {
		w.Fatal(err)
	}
	if older.Generation >= w.began {
		return
	}
	for i := range before {
		kept := slices.ContainsFunc(after, func(pod corev1.Pod) bool {
			return pod.UID == before[i].UID && pod.DeletionTimestamp.Equal(before[i].DeletionTimestamp) &&
				pod.Spec.Containers[0].Image == before[i].Spec.Containers[0].Image
		})
		if !kept {
			w.Errorf("an older set has deleted or updated pod %s", before[i].Name)
		}
	}
}

// checkClaims expects the claims of pods, and, where the policy retains them, those of all pods that ever were.
func (w *world) checkClaims() {
	w.Helper()
	claims := w.claims()
	for _, pod := range w.pods(w.set) {
		if !slices.Contains(claims, "data-"+pod.Name) {
			w.Errorf("pod %s has lost its claim", pod.Name)
		}
		w.had[pod.Name] = true
	}
	if w.set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled != keeps {
		return
	}
	for pod := range w.had {
		if !slices.Contains(claims, "data-"+pod) {
			w.Errorf("the claim of pod %s is deleted, and the policy retains it", pod)
		}
	}
}

package cloneset_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// Whatever users, nodes and faults do, the rules hold after each write. In the end the user decides, and the set
// becomes as it asks for.
func TestRandom(t *testing.T) { runWorlds(t, 0, 20) }

func runWorlds(t *testing.T, first, n uint64) {
	t.Helper()
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := draw(t, seed)
			for range 80 {
				w.act()
				w.Reconcile()
				if w.rand.IntN(2) == 0 {
					w.step()
				}
				w.Advance(time.Second)
			}
			w.faults.Of, w.lag = 0, 0
			w.process.DieAt(0)
			last := amount(w.rand, 4)
			w.change(w.set, image("web:last"), func(s *v1beta1.CloneSet) {
				s.Spec.ScaleStrategy.MaxUnavailable, s.Spec.UpdateStrategy.RollingUpdate.Paused = nil, false
				s.Spec.UpdateStrategy.RollingUpdate.Partition = last
			}, limit)
			if last.Type == intstr.Int && last.IntVal == 0 {
				w.settles()
				return
			}
			// A pod that stays below the partition may be one that never becomes ready.
			w.change(w.set, partition(0))
			w.settles()
		})
	}
}

// amount is a number or a percentage.
func amount(r *rand.Rand, most int) *intstr.IntOrString {
	if r.IntN(3) == 0 {
		return ptr.To(intstr.FromString(fmt.Sprintf("%d%%", 10*r.IntN(8))))
	}
	return ptr.To(intstr.FromInt32(int32(r.IntN(most + 1))))
}

// limit makes sure that a rollout can continue.
func limit(s *v1beta1.CloneSet) {
	if l := limitsOf(s); l.MaxSurge == 0 && l.MaxUnavailable == 0 {
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
}

func draw(t *testing.T, seed uint64) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	one := func(of int) bool { return r.IntN(of) == 0 }
	w := newWorld(t, seed, int32(r.IntN(7)), func(s *v1beta1.CloneSet) {
		u := s.Spec.UpdateStrategy.RollingUpdate
		u.MaxUnavailable, u.MaxSurge, s.Spec.MinReadySeconds = amount(r, 3), amount(r, 2), int32(max(r.IntN(8)-4, 0))
		if one(5) {
			u.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdateStrategyType
		}
		if one(2) {
			u.Partition = amount(r, 5)
		}
		if one(3) {
			u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: int32(1 + r.IntN(4))}
		}
		if one(2) {
			s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(int32(1 + r.IntN(3))))
		}
		if one(2) {
			hooks := kruise.Lifecycle{InPlaceUpdate: byLabel("update")}
			if one(2) {
				hooks.PreDelete = byLabel("delete")
			}
			if one(2) {
				hooks.PreNormal = byLabel("born")
			}
			hooked(hooks)(s)
		}
		if one(3) {
			withClaims(s)
			s.Spec.ScaleStrategy.EnablePVCReuse = one(2)
		}
		limit(s)
	})
	w.hookDelay, w.lag = r.IntN(4), max(r.IntN(8)-3, 0)
	if one(2) {
		w.faults.Of = 8 + r.IntN(8)
	}
	return w
}

// act is what the user or a fault does.
func (w *world) act() {
	w.Helper()
	r, n := w.rand, w.rand.IntN(7)
	on := func(change func(*v1beta1.RollingUpdateCloneSetStrategy)) { w.change(w.set, rolling(change), limit) }
	switch some := amount(r, 4); r.IntN(20) {
	case 0, 1:
		w.change(w.set, image([]string{"web:1", "web:2", "web:3", "web:4:broken"}[r.IntN(4)]))
	case 2:
		w.change(w.set, withEnv(fmt.Sprint(r.IntN(3))))
	case 3:
		w.change(w.set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(n)) }, limit)
	case 4:
		on(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.Partition = some })
	case 5:
		on(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.MaxUnavailable = some })
	case 6:
		on(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.Paused = !u.Paused })
	case 7:
		w.process.DieAt(1 + n)
	case 8:
		if pod := w.any(); pod != nil && n < 3 {
			w.delete(*pod)
		} else if pod != nil {
			w.mark(pod.Name)
		}
	}
}

package workload_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// drained is the label by which a hook holds objects before an update.
	drained = "example.com/drained"
	grace   = 3 * time.Second
)

func hooksOfChildren() *kruise.Lifecycle {
	hook := &kruise.LifecycleHook{LabelsHandler: map[string]string{drained: "no"}}
	return &kruise.Lifecycle{InPlaceUpdate: hook, PreDelete: hook}
}

// holdChild takes an object out of traffic by a condition, which an object in traffic does not have.
func (f *fleet) holdChild(o write.Object, held bool) *write.Write {
	set, _ := o.(*appsv1.StatefulSet)
	if held == (len(set.Status.Conditions) > 0) {
		return nil
	}
	conditions := []appsv1.StatefulSetCondition{}
	if held {
		conditions = append(conditions, appsv1.StatefulSetCondition{
			Type: "InTraffic", Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(f.Now()),
		})
	}
	return write.JSON(o, write.Status,
		write.Test("/metadata/resourceVersion", o.GetResourceVersion()), write.Add("/status/conditions", conditions))
}

// isUpdated reports whether the controller of an object has brought it to its spec.
func isUpdated(set *appsv1.StatefulSet) bool {
	return set != nil && set.Status.ReadyReplicas == 1 && set.Status.UpdateRevision == imageOf(set)
}

// isBroken reports whether an object does not get to its spec. One that was created with the spec does.
func isBroken(set *appsv1.StatefulSet) bool {
	return imageOf(set) == "web:crash" && set.Status.UpdateRevision != "" && set.Status.UpdateRevision != "web:crash"
}

// controlHook is the owner of the hook: it lets an object go, and takes it back once it is updated.
func (f *fleet) controlHook(r *rand.Rand) {
	for _, o := range f.children() {
		value := map[string]string{
			"PreparingUpdate": "yes", "PreparingDelete": "yes", "Updated": "no",
		}[o.GetLabels()[kruise.LifecycleStateKey]]
		if value == "" || value == o.GetLabels()[drained] || r != nil && r.IntN(3) == 0 {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, drained, value)
		if err := f.Server.Patch(f.Context(), o, client.RawPatch(types.MergePatchType, patch)); err != nil {
			f.Fatal(err)
		}
	}
}

// checkTraffic holds what an update keeps to: the hook, traffic and the grace period before the change, and the
// controller of the object after it.
func (f *fleet) checkTraffic(before, after client.Object) {
	was, _ := before.(*appsv1.StatefulSet)
	is, _ := after.(*appsv1.StatefulSet)
	if f.traffic && was != nil && is == nil && was.Labels[drained] == "no" {
		f.broken = append(f.broken, was.Name+" is deleted while its hook holds it")
	}
	if !f.traffic || was == nil || is == nil {
		return
	}
	wasHeld, isHeld := len(was.Status.Conditions) > 0, len(is.Status.Conditions) > 0
	if imageOf(was) != imageOf(is) {
		switch {
		case !wasHeld || f.Now().Sub(was.Status.Conditions[0].LastTransitionTime.Time) < grace:
			f.broken = append(f.broken, is.Name+" changes in traffic")
		case was.Labels[drained] == "no" || was.Labels[kruise.LifecycleStateKey] != "Updating":
			f.broken = append(f.broken, fmt.Sprintf("%s changes with labels %v", is.Name, was.Labels))
		}
	}
	if wasHeld && !isHeld && !isUpdated(was) && !isBroken(was) {
		f.broken = append(f.broken, is.Name+" is back in traffic before it is updated")
	}
}

// A fleet whose objects leave traffic for an update keeps its bounds, and its hook and grace period, whatever users and
// faults do.
func TestChildrenInTraffic(t *testing.T) {
	changed := 0
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 13))
		f := newFleet(t, seed%2 == 0)
		f.traffic, f.maxUnavailable = true, int32(1+r.IntN(2))
		faults := &podbench.Chance{Seed: seed, Of: 12}
		step := func() {
			f.reconcile()
			f.controlHook(r)
			f.controlChild(r)
			f.Advance(time.Second)
		}
		for range 120 {
			switch r.IntN(15) {
			case 0:
				f.image = []string{"web:1", "web:2", "web:3", "fixed", "web:crash"}[r.IntN(5)]
			case 1:
				f.replicas = int32(r.IntN(6))
			case 2:
				f.partition = int32(r.IntN(3))
			case 3:
				f.client = podbench.Writes(f.Server, faults.Do)
			}
			step()
		}
		f.client, f.image, f.partition, f.replicas = f.Server, "web:9", 0, 3
		for range 150 {
			step()
		}
		for _, child := range f.children() {
			if state := child.GetLabels()[kruise.LifecycleStateKey]; imageOf(child) != "web:9" || !serves(child) ||
				state != "" && state != "Normal" {
				t.Errorf("seed %d: %s runs %s with %v", seed, child.GetName(), imageOf(child), child.GetLabels())
			}
			if child.GetLabels()[kruise.LifecycleStateKey] == "Normal" {
				changed++
			}
		}
		version := f.Server.Version()
		if f.reconcile(); f.Server.Version() != version {
			t.Errorf("seed %d: writes although nothing is left to do", seed)
		}
	}
	if changed == 0 {
		t.Error("no object was updated in place")
	}
}

// An update that fails recreates the object. With InPlaceOnly it is reported, and the next revision updates the object.
func TestChildFails(t *testing.T) {
	for name, c := range map[string]struct {
		strategy workload.Strategy
		images   []string
		// serving are the objects that serve in the end, and same those of them that were not recreated.
		serving, same int
	}{
		"recreated":            {workload.InPlaceIfPossible, []string{"web:crash"}, 3, 0},
		"reported":             {workload.InPlaceOnly, []string{"web:crash"}, 2, 2},
		"updated to the third": {workload.InPlaceOnly, []string{"web:crash", "web:3"}, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, true)
			f.traffic, f.strategy = true, c.strategy
			roll := func(image string) {
				f.image = image
				for range 60 {
					f.reconcile()
					f.controlHook(nil)
					f.controlChild(nil)
					f.Advance(time.Second)
				}
			}
			roll("web:1")
			uids := map[types.UID]bool{}
			for _, child := range f.children() {
				uids[child.GetUID()] = true
			}
			for _, image := range c.images {
				roll(image)
			}
			serving, same := 0, 0
			for _, child := range f.children() {
				if serves(child) {
					serving++
					if uids[child.GetUID()] {
						same++
					}
				}
			}
			if serving != c.serving || same != c.same {
				t.Errorf("%d serve, %d of them are the same", serving, same)
			}
		})
	}
}

// An object whose update failed and that serves is not recreated: that would cost a serving one beyond the budget.
func TestChildFailsAndServes(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-0", Labels: map[string]string{kruise.LifecycleStateKey: "Updating"},
	}}
	rev := workload.Revision{Name: "web-2", Data: []byte("web:2")}
	for name, ready := range map[string]bool{"serves": true, "does not serve": false} {
		in := workload.Input{
			Update: rev, Current: rev, Strategy: workload.InPlaceIfPossible, Build: (&fleet{}).build,
			Children: &workload.Children{Patch: patchChild, Observe: func(write.Object) workload.Child {
				return workload.Child{Revision: rev.Name, Ready: ready, Failed: "its pods crash"}
			}},
		}
		in.Scale.Slots, in.Scale.Hooks = []string{"web-0"}, &kruise.Lifecycle{}
		in.Instances = in.Children.Instances(&in, []write.Object{set})
		pass, err := workload.Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		if writes := pass.Next(); (len(writes) == 0) != ready {
			t.Errorf("%s: %v", name, writes)
		}
	}
}

// Objects have no readiness gate that a hook could close.
func TestChildrenHookMarksNotReady(t *testing.T) {
	in := workload.Input{Build: (&fleet{}).build, Children: &workload.Children{Observe: observeChild, Patch: patchChild}}
	in.Scale.Hooks = hooksOfChildren()
	in.Scale.Hooks.InPlaceUpdate.MarkPodNotReady = true
	var invalid *scale.InputError
	if _, err := workload.Plan(in); !errors.As(err, &invalid) || invalid.Field != "Scale.Hooks" {
		t.Errorf("got %v", err)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/operatortest"
)

// world is the operator over objects in memory.
type world struct {
	*testing.T
	*objects.Model

	fleet *Fleet
	// units are those of the server, by name. Once all serve, so few may be out of traffic.
	units       map[string]*Unit
	established bool

	// process is the operator.
	process *podbench.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Model: objects.NewModel(t, &FleetList{}, addToScheme), units: map[string]*Unit{}}
	w.fleet = &Fleet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	w.fleet.SetGroupVersionKind(kind("Fleet"))
	w.fleet.Spec.Units, w.fleet.Spec.Size, w.fleet.Spec.MaxUnavailable, w.fleet.Spec.DrainSeconds = 3, 2, 1, 5
	w.fleet.Spec.Template = operatortest.Template("web:1")
	w.process = &podbench.Process{Server: w.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
		return &both{client: w.Server, fleets: newFleets(c, w.Server, w.Now), units: newUnits(c, w.Server, w.Now)}
	}}
	w.Reconciler = w.process
	w.Server.OnChange(w.changed)
	w.Put(w.fleet)
	w.Eventually(w.unsettled("1"))
	w.established = true
	return w
}

// both reconciles a Fleet, and then its units.
type both struct {
	client client.Client
	fleets *fleets
	units  *units
}

func (b *both) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := b.fleets.Reconcile(ctx, request)
	var list UnitList
	err = errors.Join(err, b.client.List(ctx, &list))
	for i := range list.Items {
		again, failed := b.units.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		if err = errors.Join(err, failed); again.RequeueAfter > 0 &&
			(result.RequeueAfter == 0 || again.RequeueAfter < result.RequeueAfter) {
			result.RequeueAfter = again.RequeueAfter
		}
	}
	return result, err
}

// collect deletes the pods of units that are gone, as the garbage collector does.
func (w *world) collect() {
	live := map[types.UID]bool{}
	for _, unit := range w.units {
		live[unit.UID] = true
	}
	for _, pod := range w.Pods() {
		if !live[metav1.GetControllerOf(pod).UID] {
			if err := w.Server.Delete(w.Context(), pod); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// changed holds after each write: no pod changes unless its unit has drained, and no more units than allowed are out of
// traffic.
func (w *world) changed(before, after client.Object) {
	if unit, is := before.(*Unit); is {
		delete(w.units, unit.Name)
	}
	switch o := after.(type) {
	case *Unit:
		w.units[o.Name] = o
		serving := int32(0)
		for _, unit := range w.units {
			if observe(unit).Ready {
				serving++
			}
		}
		if w.established && serving < w.fleet.Spec.Units-w.fleet.Spec.MaxUnavailable {
			w.Errorf("%d units are in traffic", serving)
		}
	case *corev1.Pod:
		was, is := before.(*corev1.Pod)
		if !is || operatortest.Tag(was) == operatortest.Tag(o) {
			return
		}
		held := observe(w.units[o.Labels[unitLabel]]).HeldSince
		if drained := w.Now().Sub(held); held.IsZero() || drained < 5*time.Second {
			w.Errorf("%s changes %v after its unit has left traffic", o.Name, drained)
		}
	}
}

// unsettled returns what is not yet as the Fleet asks for.
func (w *world) unsettled(version string) func() error {
	return func() error {
		w.Look(w.fleet)
		if len(w.units) != int(w.fleet.Spec.Units) {
			return fmt.Errorf("%d units, want %d", len(w.units), w.fleet.Spec.Units)
		}
		for _, unit := range w.units {
			if !observe(unit).Ready || unit.Spec.Revision != w.fleet.Status.CurrentRevision {
				return fmt.Errorf("unit %s has %s and %+v", unit.Name, unit.Spec.Revision, unit.Status)
			}
		}
		for _, pod := range w.Pods() {
			if !operatortest.Serves(pod) || operatortest.Tag(pod) != version {
				return fmt.Errorf("pod %s has %s", pod.Name, operatortest.Tag(pod))
			}
		}
		return nil
	}
}

func (w *world) uids() map[string]types.UID {
	all := map[string]types.UID{}
	for _, pod := range w.Pods() {
		all[pod.Name] = pod.UID
	}
	return all
}

// A rollout changes all units and pods in place, also where the process dies at each third of its writes.
func TestRollout(t *testing.T) {
	for at := 0; ; at += 3 {
		w := newWorld(t)
		before := w.uids()
		w.process.DieAt(at)
		objects.Change(w.Model, w.fleet, func(f *Fleet) { f.Spec.Template = operatortest.Template("web:2") })
		w.Eventually(w.unsettled("2"))
		if after := w.uids(); len(after) != 6 || !maps.Equal(before, after) {
			t.Errorf("dead at %d: pods were recreated: before %v, after %v", at, before, after)
		}
		if w.process.Written() < at {
			break
		}
	}
}

// A change that no running pod can take recreates the units, one at a time.
func TestRecreate(t *testing.T) {
	w := newWorld(t)
	unit := w.units["web-0"].UID
	objects.Change(w.Model, w.fleet, func(f *Fleet) { f.Spec.Template.Spec.HostNetwork = true })
	w.Eventually(func() error {
		w.collect()
		if w.units["web-0"] == nil || w.units["web-0"].UID == unit {
			return errors.New("the unit is the same")
		}
		return w.unsettled("1")()
	})
}

// TestSetup adds the operator to a manager that is not started.
func TestSetup(t *testing.T) { operatortest.Setup(t, add) }

// TestDefinition reads the definitions, which have all fields of the types.
func TestDefinition(t *testing.T) {
	w := newWorld(t)
	operatortest.Definition(t, "fleet.yaml", kind("Fleet"), w.fleet)
	operatortest.Definition(t, "unit.yaml", kind("Unit"), w.units["web-0"])
}

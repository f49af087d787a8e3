// Command fleet is an operator of two levels on one engine: a Fleet has Units, and a Unit has pods. The Fleet updates
// its units a few at a time. A unit leaves traffic by a condition in its status, drains, changes, and comes back when
// its pods run what they should. The Unit updates its pods in place: one at a time in traffic, and all at once out of
// it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

func main() {
	ctrl.SetLogger(klog.Background())
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err == nil {
		err = add(mgr)
	}
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// add adds the operator to a manager.
func add(mgr ctrl.Manager) error {
	if err := addToScheme(mgr.GetScheme()); err != nil {
		return err
	}
	fleets := newFleets(mgr.GetClient(), mgr.GetAPIReader(), time.Now)
	units := newUnits(mgr.GetClient(), mgr.GetAPIReader(), time.Now)
	return errors.Join(
		ctrl.NewControllerManagedBy(mgr).For(&Fleet{}).Owns(&Unit{}).WatchesRawSource(&fleets.Queue).Complete(fleets),
		ctrl.NewControllerManagedBy(mgr).For(&Unit{}).Owns(&corev1.Pod{}).WatchesRawSource(&units.Queue).Complete(units),
	)
}

// The labels by which a Fleet lists its units, and a Unit its pods. Revisions have the label of their owner.
const fleetLabel, unitLabel = "example.com/fleet", "example.com/unit"

// fleets reconciles Fleets.
type fleets struct {
	*runtimeclient.Workloads

	// units records the writes to units, which a cache shows late.
	units *ledger.Ledger[*Unit]
	now   func() time.Time
}

func newFleets(c client.Client, live client.Reader, now func() time.Time) *fleets {
	units := ledger.New[*Unit](live, now)
	o := runtimeclient.WorkloadsOptions{Now: now, Ledgers: []driver.Recorder{units}}
	return &fleets{runtimeclient.NewWorkloads(c, live, o), units, now}
}

// Reconcile makes a pass over the units of a Fleet.
func (r *fleets) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	fleet := &Fleet{}
	if err := r.Get(ctx, request.NamespacedName, fleet); err != nil || fleet.DeletionTimestamp != nil {
		r.units.Forget(request.NamespacedName)
		return r.Gone(request, err)
	}
	of := client.MatchingLabels{fleetLabel: fleet.Name}
	seen, err := r.Observe(ctx, fleet, of)
	units, later, failed := r.units.List(ctx, r, fleet, &UnitList{}, of)
	in, invalid := r.input(fleet, seen, units)
	if err := errors.Join(err, failed, invalid); err != nil {
		return reconcile.Result{}, err
	}
	pass, err := r.Run(ctx, fleet, in)
	if pass == nil {
		return reconcile.Result{}, err
	}
	old := fleet.DeepCopy()
	fleet.Status.CurrentRevision, _ = pass.Promote(fleet.Status.CurrentRevision)
	result, err := r.Result(request, pass, errors.Join(err, r.PatchStatus(ctx, old, fleet)))
	if later > 0 && (result.RequeueAfter == 0 || later < result.RequeueAfter) {
		result.RequeueAfter = later
	}
	return result, err
}

// input describes the units of a Fleet to package workload.
func (r *fleets) input(f *Fleet, seen runtimeclient.Observed, units []*Unit) (in workload.Input, err error) {
	data, err := revision.Encode(&f.Spec.Template)
	if err != nil {
		return in, err
	}
	in = workload.Input{
		Owner:        workload.OwnedBy(f, kind("Fleet"), map[string]string{fleetLabel: f.Name}),
		Scale:        scale.Input{Limits: scale.Limits{Replicas: f.Spec.Units, MaxUnavailable: f.Spec.MaxUnavailable}},
		Children:     &workload.Children{Observe: observe, Patch: patch, Hold: r.hold},
		GraceSeconds: f.Spec.DrainSeconds,
		Strategy:     workload.InPlaceIfPossible,
	}
	for i := range f.Spec.Units {
		in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("%s-%d", f.Name, i))
	}
	objects := make([]write.Object, len(units))
	for i, unit := range units {
		objects[i] = unit
	}
	in.Instances = in.Children.Instances(&in, objects)
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, c := range creations {
			template, err := in.Template(c)
			if err != nil {
				return nil, err
			}
			unit := &Unit{ObjectMeta: metav1.ObjectMeta{
				Namespace: f.Namespace, Name: c.Slot, Labels: in.Owner.Labels,
				OwnerReferences: []metav1.OwnerReference{in.Owner.Reference},
			}}
			unit.Spec.Revision, unit.Spec.Size, unit.Spec.Template = c.Revision, f.Spec.Size, *template
			all = append(all, []write.Object{unit})
		}
		return all, nil
	}
	return in, in.SetHistory(workload.History{
		Data: data, Stored: seen.Revisions, Current: f.Status.CurrentRevision, Limit: 10,
	})
}

// observe returns what a plan counts of a unit.
func observe(object write.Object) workload.Child {
	unit, _ := object.(*Unit)
	held := meta.FindStatusCondition(unit.Status.Conditions, inTraffic)
	child := workload.Child{
		Revision: unit.Spec.Revision,
		Updated:  unit.Status.Revision == unit.Spec.Revision && unit.Status.Ready == unit.Spec.Size,
	}
	if child.Ready = child.Updated && held == nil; held != nil {
		child.HeldSince = held.LastTransitionTime.Time
	}
	return child
}

// patch returns the write that brings a unit to a revision. A unit whose pods cannot change in place is recreated.
func patch(object write.Object, to *workload.Revision) (*write.Write, error) {
	unit, _ := object.(*Unit)
	template, err := revision.Decode(to.Data)
	if err != nil {
		return nil, err
	}
	if _, err := inplace.Diff(&unit.Spec.Template, template, inplace.Policy{}); err != nil {
		return nil, err
	}
	return write.JSON(unit, write.Main,
		write.Test("/metadata/resourceVersion", unit.ResourceVersion),
		write.Replace("/spec/template", template), write.Replace("/spec/revision", to.Name)), nil
}

// inTraffic is the condition that keeps a unit out of traffic while it is False.
const inTraffic = "InTraffic"

// hold takes a unit out of traffic, or puts it back.
func (r *fleets) hold(object write.Object, held bool) *write.Write {
	unit, _ := object.(*Unit)
	if held == (meta.FindStatusCondition(unit.Status.Conditions, inTraffic) != nil) {
		return nil
	}
	conditions := []metav1.Condition{}
	if held {
		conditions = append(conditions, metav1.Condition{
			Type: inTraffic, Status: metav1.ConditionFalse, Reason: "Update", LastTransitionTime: metav1.NewTime(r.now()),
		})
	}
	return write.JSON(unit, write.Status,
		write.Test("/metadata/resourceVersion", unit.ResourceVersion), write.Add("/status/conditions", conditions))
}

// units reconciles Units.
type units struct{ *runtimeclient.Workloads }

func newUnits(c client.Client, live client.Reader, now func() time.Time) *units {
	return &units{runtimeclient.NewWorkloads(c, live, runtimeclient.WorkloadsOptions{Now: now})}
}

// Reconcile makes a pass over the pods of a Unit.
func (r *units) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	unit := &Unit{}
	if err := r.Get(ctx, request.NamespacedName, unit); err != nil || unit.DeletionTimestamp != nil {
		return r.Gone(request, err)
	}
	seen, err := r.Observe(ctx, unit, client.MatchingLabels{unitLabel: unit.Name})
	in, invalid := unit.input(seen)
	if err := errors.Join(err, invalid); err != nil {
		return reconcile.Result{}, err
	}
	pass, err := r.Run(ctx, unit, in)
	if pass == nil {
		return reconcile.Result{}, err
	}
	old, counts := unit.DeepCopy(), pass.Counts()
	unit.Status.CurrentRevision, _ = pass.Promote(unit.Status.CurrentRevision)
	if unit.Status.Ready = counts.Ready; counts.UpdatedReady == unit.Spec.Size {
		unit.Status.Revision = unit.Spec.Revision
	}
	return r.Result(request, pass, errors.Join(err, r.PatchStatus(ctx, old, unit)))
}

// input describes the pods of a Unit to package workload. Out of traffic they change together.
func (u *Unit) input(seen runtimeclient.Observed) (in workload.Input, err error) {
	data, err := revision.Encode(&u.Spec.Template)
	if err != nil {
		return in, err
	}
	limits := scale.Limits{Replicas: u.Spec.Size, MaxUnavailable: 1}
	if meta.FindStatusCondition(u.Status.Conditions, inTraffic) != nil {
		limits.MaxUnavailable = u.Spec.Size
	}
	in = workload.Input{
		Owner:     workload.OwnedBy(u, kind("Unit"), map[string]string{unitLabel: u.Name}),
		Scale:     scale.Input{Limits: limits},
		Instances: workload.Pods(seen.Pods),
		Strategy:  workload.InPlaceIfPossible,
	}
	for i := range u.Spec.Size {
		in.Scale.Slots = append(in.Scale.Slots, fmt.Sprintf("%s-%d", u.Name, i))
	}
	return in, in.SetHistory(workload.History{
		Data: data, Stored: seen.Revisions, Current: u.Status.CurrentRevision, Limit: 10,
	})
}

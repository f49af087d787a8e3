package workloads

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Steps are the parts of a reconcile that a kind has. P is its plan, which embeds a Plan.
type Steps[P interface{ base() *Plan }] struct {
	// Plan plans a pass. It may be called again with more pods.
	Plan func() (P, error)
	// Failed returns the status of a workload whose pass fails before anything is known of the pods.
	Failed func(why error) Report
	// Parts returns the parts of the pass.
	Parts func(P) Parts
	// Begin and End are called before and after a pass; nil for no call.
	Begin, End func(P)
}

// Reconcile brings a workload a step closer to what it asks for. A workload that is invalid is left as it is until it
// changes.
func Reconcile[P interface{ base() *Plan }](
	ctx context.Context, k *Kit, o *Observation, of Steps[P],
) (ctrl.Result, error) {
	if o.Invalid != nil {
		return ctrl.Result{}, k.giveUp(ctx, o, of.Failed(o.Invalid), o.Invalid)
	}
	request := ctrl.Request{NamespacedName: o.Key()}
	p, recheckAfter, err := verified(ctx, k, o, of.Plan)
	if err != nil || recheckAfter > 0 {
		return k.Result(request, recheckAfter, err)
	}
	if of.Begin != nil {
		of.Begin(p)
	}
	err = k.run(ctx, o, p.base(), of.Parts(p))
	if p.base().Store.Err() != nil {
		return ctrl.Result{}, k.giveUp(ctx, o, of.Failed(err), err)
	}
	if of.End != nil {
		of.End(p)
	}
	return k.finish(request, p.base(), err)
}

// verified returns what plan plans, once the cache is known to show what the plan relies on. Each read past the cache
// comes once for a workload, and only where the plan would do harm without: an earlier process, or an earlier leader,
// may have created pods a moment ago, and the first list of the workloads may be older than that of the pods.
// recheckAfter is zero for a plan to execute. Otherwise the cache shows an older workload: nothing is written, and the
// next pass comes after that time.
func verified[P interface{ base() *Plan }](
	ctx context.Context, k *Kit, o *Observation, plan func() (P, error),
) (p P, recheckAfter time.Duration, err error) {
	if p, err = plan(); err != nil {
		return p, 0, err
	}
	if needsPods := p.base().NeedsPods && p.base().Runs(o); needsPods && o.Known.verified != o.Object.GetUID() {
		if err := k.addMissing(ctx, o); err != nil {
			return p, 0, err
		}
		if p, err = plan(); err != nil {
			return p, 0, err
		}
	}
	if k.confirmed.Has(o.Object) || !p.base().needsObject(o) {
		return p, 0, nil
	}
	recheckAfter, err = k.confirmed.Confirm(ctx, k.Live, o.Kind, o.Object)
	return p, recheckAfter, err
}

// addMissing reads the pods past the cache, and adds those that the cache lacks.
func (k *Kit) addMissing(ctx context.Context, o *Observation) error {
	missing, err := k.Missing(ctx, o.Object, o.Selector, o.Pods)
	if err != nil {
		return err
	}
	o.Add(o.Selector, missing...)
	uid := o.Object.GetUID()
	o.Known.verified = uid
	k.memory.Note(o.Key(), func(known *Known) { known.verified = uid })
	return nil
}

// needsObject reports whether the pass does harm where the cache shows an older workload: the user may have scaled out,
// or gone on to the revision of the pods, since.
func (p *Plan) needsObject(o *Observation) bool {
	return p.Runs(o) && (p.NeedsObject || p.Pass.Disrupts())
}

// base returns the plan that the plan of a kind embeds.
func (p *Plan) base() *Plan { return p }

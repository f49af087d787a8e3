package workloads

import (
	"context"
	"time"
)

// Verified returns what plan plans, once the cache is known to show what the plan relies on. Each read past the cache
// comes once for a workload, and only where the plan would do harm without: an earlier process, or an earlier leader,
// may have created pods a moment ago, and the first list of the workloads may be older than that of the pods.
// recheckAfter is zero for a plan to execute. Otherwise the cache shows an older workload: nothing is written, and the
// next pass comes after that time.
func Verified[P interface{ base() *Plan }](
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

package sidecarset

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/internal/metrics"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
	"github.com/kruisekit/kruisekit/write"
)

// Reasons of events.
const (
	reasonNotUpgradable = "NotUpgradablePods"
	reasonReset         = "ResetContainerSucceed"
	reasonFailedReset   = "ResetContainerFailed"
	// The reference emits none of these: an invalid spec, pods without containers of the set, updates without progress,
	// and pods that cannot be updated.
	reasonInvalidSpec = "InvalidSpec"
	reasonLacking     = "ContainersMissing"
	reasonLimited     = "UpdateLimited"
	reasonFailed      = "FailedUpdate"
)

// emitInvalid reports the errors of a spec, once for a spec: by the rules of the webhook, which may have been
// another one when the set was stored. Pods follow the set as far as the spec can be read. why is reported where the
// rules find nothing.
func (r *Reconciler) emitInvalid(p *plan, known *state, why error) {
	if known.judged == p.set.Generation {
		return
	}
	known.judged = p.set.Generation
	if faults := sidecarsets.Validate(p.set); p.malformed == nil && len(faults) > 0 {
		why = faults.ToAggregate()
	}
	if why != nil {
		r.api.Event(p.set, corev1.EventTypeWarning, reasonInvalidSpec, why.Error())
	}
}

// emitLacking reports pods that lack containers, once until all pods have them.
func (r *Reconciler) emitLacking(p *plan, known *state) {
	n := p.rollout.Result().Lacking
	r.meters.lacking.WithLabelValues(p.set.Name).Set(float64(n))
	if n > 0 && !known.lacking {
		const text = "%d pods that this set selects lack containers of it; only new pods get them"
		r.api.Warningf(p.set, reasonLacking, text, n)
	}
	known.lacking = n > 0
}

// emitBlocked reports pods of which this pass found that the set cannot update them.
func (r *Reconciler) emitBlocked(p *plan) {
	if n := p.rollout.Blocked(); n > 0 {
		const text = "%d pods cannot be updated in place, since more than images has changed"
		r.api.Normalf(p.set, reasonNotUpgradable, text, n)
	}
}

// emitReset reports the end of a hot upgrade.
func (r *Reconciler) emitReset(pod *corev1.Pod, err error) {
	switch {
	case err == nil:
		r.api.Normalf(pod, reasonReset, "reset sidecar container image empty successfully")
	case !write.IsOutdated(err):
		r.api.Warningf(pod, reasonFailedReset, "failed to reset a sidecar container to the empty image: %v", err)
	}
}

// emitFailures reports pods whose records cannot be read, and refused changes, once as long as these and the spec are
// the same. A pass without failures resets nothing: a pod whose update was refused is held for a while.
func (r *Reconciler) emitFailures(p *plan) {
	if text := p.rollout.Failures(); text != "" && r.failures.Changed(p.set.Name, fmt.Sprint(p.set.Generation, text)) {
		r.api.Event(p.set, corev1.EventTypeWarning, reasonFailed, text)
	}
}

// emitStall reports updates that wait for pods to become ready, of which none has for a while, once for a spec. It
// returns when to look again.
func (r *Reconciler) emitStall(p *plan, known *state) (after time.Duration) {
	result, now := p.rollout.Result(), r.api.Now()
	step, text := "", ""
	for _, n := range result.Notes {
		if n.Code == rollout.NoteUpdateLimited {
			step, text = fmt.Sprint(p.set.Generation, result.Status.UpdatedPods, result.Status.UpdatedReadyPods), n.Text
		}
	}
	left := known.progress(step, now, r.options.Stalled)
	stands := step != "" && left <= 0
	r.meters.stands(p.set.Name, stands)
	if stands && known.stalled != p.set.Generation {
		known.stalled = p.set.Generation
		r.api.Event(p.set, corev1.EventTypeWarning, reasonLimited, text)
	}
	return max(left, 0)
}

// meters are the metrics of the reconciler.
type meters struct {
	lacking *prometheus.GaugeVec
	stalled *metrics.Stalled
}

// newMeters registers the metrics, unless the registerer is nil or another reconciler of the process has done so.
func newMeters(registerer prometheus.Registerer) (meters, error) {
	stands, err := metrics.RegisterStalled(registerer)
	if err != nil {
		return meters{}, err
	}
	m := meters{stalled: stands, lacking: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_sidecarset_pods_lacking_containers",
		Help: "Pods that a SidecarSet selects, that record it, and that lack a container of it.",
	}, []string{"sidecarset"})}
	if registerer != nil {
		m.lacking, err = metrics.Register(registerer, m.lacking)
	}
	return m, err
}

// stands reports in the metrics whether updates stand still.
func (m meters) stands(set string, is bool) {
	var why metrics.Reason
	if is {
		why = metrics.Reason{Status: string(corev1.ConditionUnknown), Code: rollout.NoteUpdateLimited}
	}
	m.stalled.Set(gvk().Kind, types.NamespacedName{Name: set}, why)
}

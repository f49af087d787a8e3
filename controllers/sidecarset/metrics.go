package sidecarset

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/internal/collectors"
	"github.com/kruisekit/kruisekit/internal/standstill"
)

// meters are the metrics of the reconciler.
type meters struct {
	lacking    *prometheus.GaugeVec
	standstill *standstill.Metrics
}

// newMeters registers the metrics, unless the registerer is nil or another reconciler of the process has done so.
func newMeters(registerer prometheus.Registerer) (meters, error) {
	stands, err := standstill.Register(registerer)
	if err != nil {
		return meters{}, err
	}
	m := meters{standstill: stands, lacking: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_sidecarset_pods_lacking_containers",
		Help: "Pods that a SidecarSet selects, that record it, and that lack a container of it.",
	}, []string{"sidecarset"})}
	if registerer != nil {
		m.lacking, err = collectors.Register(registerer, m.lacking)
	}
	return m, err
}

// stands reports in the metrics whether updates stand still.
func (m meters) stands(set string, is bool) {
	var why standstill.Reason
	if is {
		why = standstill.Reason{Status: string(corev1.ConditionUnknown), Code: rollout.NoteUpdateLimited}
	}
	m.standstill.Set(gvk().Kind, types.NamespacedName{Name: set}, why)
}

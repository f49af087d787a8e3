package sidecarset

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are the metrics of the reconciler.
type meters struct{ lacking *prometheus.GaugeVec }

// newMeters registers the metrics, unless the registerer is nil or another reconciler of the process has done so.
func newMeters(registerer prometheus.Registerer) (meters, error) {
	m := meters{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kruisekit_sidecarset_pods_lacking_containers",
		Help: "Pods that a SidecarSet selects, that record it, and that lack a container of it.",
	}, []string{"sidecarset"})}
	if registerer == nil {
		return m, nil
	}
	err := registerer.Register(m.lacking)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if have, same := already.ExistingCollector.(*prometheus.GaugeVec); same {
			return meters{have}, nil
		}
	}
	if err != nil {
		return m, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

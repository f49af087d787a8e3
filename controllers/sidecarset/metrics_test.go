package sidecarset

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A status of a SidecarSet has no conditions, so that a gauge alone reports updates that stand still.
func TestStandstillMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMeters(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, stands := range []bool{true, false} {
		m.stands("proxies", stands)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got float64
		for _, family := range families {
			if family.GetName() == "kruisekit_workloads_stalled" {
				got = family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		if (got == 1) != stands {
			t.Errorf("stands %t: %v", stands, families)
		}
	}
	if again, err := newMeters(registry); err != nil || again != m {
		t.Errorf("a second reconciler of the process has other metrics: %v", err)
	}
}

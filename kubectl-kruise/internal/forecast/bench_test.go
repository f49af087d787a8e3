package forecast_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
)

// BenchmarkOf forecasts an image of a thousand pods, a tenth at a time.
func BenchmarkOf(b *testing.B) {
	set := web(1000)
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount("10%")
	m := newModel(b, set)
	m.addNodes(50)
	m.Put(set)
	for range 5 { // a pass creates half of them
		m.Reconcile()
		m.RunPods()
		m.RunPods()
		m.Advance(time.Second)
	}
	m.Look(set)
	wanted := set.DeepCopy()
	image("web:2")(wanted)
	objects := m.all(b)
	for b.Loop() {
		f, err := forecast.Of(b.Context(), forecast.Input{Now: m.Now(), Live: set, Wanted: wanted, Objects: objects})
		if err != nil || len(f.Pods) != 1000 || len(f.Batches) != 10 {
			b.Fatalf("%d pods, %d batches, %v", len(f.Pods), len(f.Batches), err)
		}
	}
}

package podprobemarker

import (
	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// status returns the write of the status, if the status changed.
func (s *snapshot) status() (*write.Write, error) {
	is := *s.marker
	is.Status = v1alpha1.PodProbeMarkerStatus{
		ObservedGeneration: s.marker.Generation, MatchedPods: int64(s.normal + len(s.virtual)),
	}
	return stored.WriteStatus(kind(), s.marker, &is, map[string]any{"observedGeneration": is.Status.ObservedGeneration})
}

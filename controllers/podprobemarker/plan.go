package podprobemarker

import (
	"slices"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do about a marker now: its writes in their order. All of it follows from the snapshot.
type plan struct {
	// finalizer is the write of the finalizers; nil where they stay. Where it fails, nothing else is written.
	finalizer *write.Write
	// marks are the patches of pods.
	marks []*write.Write
	// status is the write of the status; nil where it stays the same.
	status *write.Write
}

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) (*plan, error) {
	p := &plan{finalizer: s.finalizers()}
	if s.marker.DeletionTimestamp != nil || s.malformed != nil {
		return p, nil //nolint:nilerr // an event reports it
	}
	if s.serverless && marksVirtual(s.marker) {
		p.marks = s.marks()
	}
	var err error
	p.status, err = s.status()
	return p, err
}

// kind is that of markers.
func kind() stored.Kind { return stored.Kind{GVK: markers.GVK()} }

// finalizers returns the write of the finalizers that the marker is to have; nil where it has them.
func (s *snapshot) finalizers() *write.Write {
	const finalizer = v1alpha1.PodProbeMarkerFinalizerKey
	has := slices.Contains(s.marker.Finalizers, finalizer)
	switch deleted := s.marker.DeletionTimestamp != nil; {
	case deleted && has && !s.running:
		kept := slices.DeleteFunc(slices.Clone(s.marker.Finalizers), func(f string) bool { return f == finalizer })
		return kind().Finalizers(s.marker, kept)
	case !deleted && !has:
		return kind().Finalizers(s.marker, append(slices.Clone(s.marker.Finalizers), finalizer))
	}
	return nil
}

// marksVirtual reports whether a probe of a marker has both a condition and marks, which follow the condition on
// virtual nodes.
func marksVirtual(m *v1alpha1.PodProbeMarker) bool {
	return slices.ContainsFunc(m.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool {
		return p.PodConditionType != "" && len(p.MarkerPolicy) > 0
	})
}

// marks returns the patches of the pods on virtual nodes. Of the markers that set one label, the last by name decides,
// also in the pass of another one.
func (s *snapshot) marks() []*write.Write {
	var all []*write.Write
	for _, pod := range s.virtual {
		m := podprobe.Mark(pod, podprobe.FromConditions(pod, s.others))
		if w := m.Write(); w != nil {
			all = append(all, w)
		}
	}
	return all
}

// status returns the write of the status, if the status changed.
func (s *snapshot) status() (*write.Write, error) {
	is := *s.marker
	is.Status = v1alpha1.PodProbeMarkerStatus{
		ObservedGeneration: s.marker.Generation, MatchedPods: int64(s.normal + len(s.virtual)),
	}
	return stored.WriteStatus(kind(), s.marker, &is, map[string]any{"observedGeneration": is.Status.ObservedGeneration})
}

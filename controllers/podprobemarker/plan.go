package podprobemarker

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is all that is to be done about a marker now. It follows from the snapshot, and from the answers.
type plan struct {
	*snapshot

	finalizer, marking *markers.Pass
	// marks are the patches of pods, and known those of recent passes, these included.
	marks []workload.Cause
	known workload.Repeats
	// status is what the marker is to have; nil for a marker that has none to report.
	status *v1alpha1.PodProbeMarkerStatus
}

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) (*plan, error) {
	p := &plan{snapshot: s}
	w, err := s.finalizers()
	if err != nil {
		return nil, err
	}
	p.finalizer = markers.Write(w)
	if s.marker.DeletionTimestamp == nil && s.malformed == nil {
		p.status = &v1alpha1.PodProbeMarkerStatus{
			ObservedGeneration: s.marker.Generation, MatchedPods: int64(s.normal + len(s.virtual)),
		}
		if s.serverless && marksVirtual(s.marker) {
			for _, pod := range s.virtual {
				p.mark(pod)
			}
		}
	}
	p.marking, p.known = markers.Mark(p.marks, s.known, s.now)
	return p, nil
}

// kind is that of markers.
func kind() stored.Kind { return stored.Kind{GVK: markers.GVK()} }

// pass is all that is written. Where the marker has changed meanwhile, another pass decides about the rest.
func (p *plan) pass() pass {
	return driver.Sequence(
		step{Plan: func() (pass, error) { return p.finalizer, nil }, Required: true},
		step{Plan: func() (pass, error) { return p.unlessOutdated(p.marking), nil }},
		step{Plan: p.report},
	)
}

func (p *plan) unlessOutdated(then pass) pass {
	if p.finalizer.Outdated {
		return nil
	}
	return then
}

// finalizers returns the write of the finalizers that the marker is to have; nil where it has them.
func (s *snapshot) finalizers() (*write.Write, error) {
	const finalizer = v1alpha1.PodProbeMarkerFinalizerKey
	has := slices.Contains(s.marker.Finalizers, finalizer)
	switch deleted := s.marker.DeletionTimestamp != nil; {
	case deleted && has && !s.running:
		kept := slices.DeleteFunc(slices.Clone(s.marker.Finalizers), func(f string) bool { return f == finalizer })
		return kind().Finalizers(s.marker, kept)
	case !deleted && !has:
		return kind().Finalizers(s.marker, append(slices.Clone(s.marker.Finalizers), finalizer))
	}
	return nil, nil
}

// marksVirtual reports whether a probe of a marker has both a condition and marks, which follow the condition on
// virtual nodes.
func marksVirtual(m *v1alpha1.PodProbeMarker) bool {
	return slices.ContainsFunc(m.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool {
		return p.PodConditionType != "" && len(p.MarkerPolicy) > 0
	})
}

// mark adds the patch of a pod on a virtual node. Of the markers that set one label the last by name decides, whichever
// of them is looked at.
func (p *plan) mark(pod *corev1.Pod) {
	m := podprobe.Mark(pod, podprobe.FromConditions(pod, p.others))
	if w := m.Write(); w != nil {
		p.marks = append(p.marks, workload.Cause{Write: w, Why: m.Cause()})
	}
}

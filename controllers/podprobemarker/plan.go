package podprobemarker

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/workload"
)

// pass is all that is to be done about a marker now.
type pass struct {
	// finalizers are all that the marker is to have, and writeFinalizers whether that differs.
	finalizers      []string
	writeFinalizers bool
	// status is what the marker is to have; nil for a marker that has none to report.
	status *v1alpha1.PodProbeMarkerStatus
	// marks are the patches of pods.
	marks []workload.Cause
}

// plan decides, from a snapshot alone. markers are those that may select the pods on virtual nodes: the last by name decides about a label
// that several set, whichever of them is looked at.
func plan(s *snapshot, markers []*v1alpha1.PodProbeMarker, serverless bool) pass {
	const finalizer = v1alpha1.PodProbeMarkerFinalizerKey
	has := slices.Contains(s.marker.Finalizers, finalizer)
	if s.marker.DeletionTimestamp != nil {
		if s.running || !has {
			return pass{}
		}
		kept := slices.DeleteFunc(slices.Clone(s.marker.Finalizers), func(f string) bool { return f == finalizer })
		return pass{finalizers: kept, writeFinalizers: true}
	}
	p := pass{}
	if !has {
		p.finalizers, p.writeFinalizers = append(slices.Clone(s.marker.Finalizers), finalizer), true
	}
	if s.malformed != nil {
		return p
	}
	p.status = &v1alpha1.PodProbeMarkerStatus{ObservedGeneration: s.marker.Generation, MatchedPods: int64(s.normal + len(s.virtual))}
	if serverless && marksVirtual(s.marker) {
		for _, pod := range s.virtual {
			p.mark(pod, markers)
		}
	}
	return p
}

// marksVirtual reports whether a probe of a marker has both a condition and marks, which follow the condition on virtual nodes.
func marksVirtual(m *v1alpha1.PodProbeMarker) bool {
	return slices.ContainsFunc(m.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool {
		return p.PodConditionType != "" && len(p.MarkerPolicy) > 0
	})
}

func (p *pass) mark(pod *corev1.Pod, markers []*v1alpha1.PodProbeMarker) {
	m := podprobe.Mark(pod, podprobe.FromConditions(pod, markers))
	if w := m.Write(); w != nil {
		p.marks = append(p.marks, workload.Cause{Write: w, Why: m.Cause()})
	}
}

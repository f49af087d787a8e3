package nodepodprobe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do about a node now. All of it follows from the snapshot.
type plan struct {
	*snapshot

	// probing is the write of the NodePodProbe; nil for none.
	probing *write.Write
	// content is what the NodePodProbe is to have.
	content []v1alpha1.PodProbe
	// marks are the patches of pods.
	marks []*write.Write
	notes []note.Note
}

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) (*plan, error) {
	p := &plan{snapshot: s}
	if s.node == nil || s.node.DeletionTimestamp != nil {
		if s.probes != nil {
			p.probing = kind().Deletion(s.probes)
		}
		return p, nil
	}
	virtual := podprobe.IsVirtual(s.node)
	if s.probes == nil {
		if !virtual && isReady(s.node) {
			p.probing = &write.Write{Verb: write.Create, Object: kind().Named(s.key())}
		}
		return p, nil
	}
	in := podprobe.Node{Asked: s.probes.Spec.PodProbes}
	if !virtual {
		in.Pods = s.pods
	}
	for _, all := range s.markers {
		in.Markers = append(in.Markers, all...)
	}
	desired := podprobe.Desired(in)
	p.content, p.notes = desired.PodProbes, desired.Notes
	if !virtual {
		p.mark()
	}
	if !desired.Changed {
		return p, nil
	}
	// The API server treats the list as one value: the whole list is written, into the version that was read.
	is := *s.probes
	is.Spec.PodProbes = p.content
	var err error
	p.probing, err = kind().Update(s.probes, &is)
	return p, err
}

// kind is that of NodePodProbes.
func kind() stored.Kind { return stored.Kind{GVK: markers.NodeGVK()} }

// mark adds the patches that results ask for. Only pods that are probed, and markers that still select them, count.
func (p *plan) mark() {
	pods := map[string]*corev1.Pod{}
	for _, pod := range p.pods {
		pods[string(pod.UID)] = pod
	}
	probed := map[string]bool{}
	for i := range p.content {
		probed[p.content[i].UID] = true
	}
	marked := map[string]bool{}
	for i := range p.probes.Status.PodProbeStatuses {
		status := &p.probes.Status.PodProbeStatuses[i]
		pod := pods[status.UID]
		if pod == nil || !probed[status.UID] || marked[status.UID] {
			continue
		}
		marked[status.UID] = true
		m := podprobe.Mark(pod, podprobe.Outcomes(status.ProbeStates, podprobe.Selecting(pod, p.markers[pod.Namespace])))
		for _, n := range m.Notes {
			n.Object = pod.Namespace + "/" + n.Object
			p.notes = append(p.notes, n)
		}
		if w := m.Write(); w != nil {
			p.marks = append(p.marks, w)
		}
	}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

package nodepodprobe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
)

// pass is all that is to be done about a node now.
type pass struct {
	// create and remove are about the NodePodProbe.
	create, remove bool
	// content is what the NodePodProbe is to have, and write whether that differs.
	content []v1alpha1.PodProbe
	write   bool
	// marks are the patches of pods.
	marks []workload.Cause
	notes []note.Note
}

// plan decides, from a snapshot alone.
func plan(s *snapshot) pass {
	if s.node == nil || s.node.DeletionTimestamp != nil {
		return pass{remove: s.probes != nil}
	}
	virtual := podprobe.IsVirtual(s.node)
	if s.probes == nil && (virtual || !isReady(s.node)) {
		return pass{}
	}
	in := podprobe.Node{}
	if !virtual {
		in.Pods = s.pods
	}
	for _, all := range s.markers {
		in.Markers = append(in.Markers, all...)
	}
	if s.probes != nil {
		in.Asked = s.probes.Spec.PodProbes
	}
	desired := podprobe.Desired(in)
	p := pass{create: s.probes == nil, content: desired.PodProbes, write: desired.Changed, notes: desired.Notes}
	if s.probes != nil && !virtual {
		p.mark(s)
	}
	return p
}

// mark adds the patches that results ask for. Only pods that are probed, and markers that still select them, count.
func (p *pass) mark(s *snapshot) {
	pods := map[string]*corev1.Pod{}
	for _, pod := range s.pods {
		pods[string(pod.UID)] = pod
	}
	probed := map[string]bool{}
	for i := range p.content {
		probed[p.content[i].UID] = true
	}
	marked := map[string]bool{}
	for i := range s.probes.Status.PodProbeStatuses {
		status := &s.probes.Status.PodProbeStatuses[i]
		pod := pods[status.UID]
		if pod == nil || !probed[status.UID] || marked[status.UID] {
			continue
		}
		marked[status.UID] = true
		m := podprobe.Mark(pod, podprobe.Outcomes(status.ProbeStates, podprobe.Selecting(pod, s.markers[pod.Namespace])))
		for _, n := range m.Notes {
			n.Object = pod.Namespace + "/" + n.Object
			p.notes = append(p.notes, n)
		}
		if w := m.Write(); w != nil {
			p.marks = append(p.marks, workload.Cause{Write: w, Why: m.Cause()})
		}
	}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

package nodepodprobe

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is all that is to be done about a node now. It follows from the snapshot, and from the answers.
type plan struct {
	*snapshot

	// probing is the pass of the NodePodProbe; nil for none.
	probing pass
	// content is what the NodePodProbe is to have.
	content []v1alpha1.PodProbe
	// marks are the patches of pods, and repeats those of recent passes, these included.
	marks   []workload.Cause
	repeats workload.Repeats
	notes   []note.Note
}

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) (*plan, error) {
	p := &plan{snapshot: s}
	if s.node == nil || s.node.DeletionTimestamp != nil {
		if s.probes != nil {
			p.probing = s.removal()
		}
		return p, nil
	}
	virtual := podprobe.IsVirtual(s.node)
	if s.probes == nil && (virtual || !isReady(s.node)) {
		return p, nil
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
	p.content, p.notes = desired.PodProbes, desired.Notes
	if s.probes != nil && !virtual {
		p.mark()
	}
	return p, p.probe(desired.Changed)
}

// kind is that of NodePodProbes.
func kind() stored.Kind { return stored.Kind{GVK: markers.NodeGVK()} }

// pass is all that is written. Neither the NodePodProbe nor a pod holds up another pod.
func (p *plan) pass() pass {
	return driver.Sequence(
		step{Plan: func() (pass, error) { return p.probing, nil }},
		step{Plan: func() (marking pass, err error) {
			marking, p.repeats = markers.Mark(p.marks, p.known, p.now)
			return marking, nil
		}},
	)
}

// probe plans the NodePodProbe of a node.
func (p *plan) probe(changed bool) (err error) {
	var w *write.Write
	switch {
	case p.probes == nil:
		w, err = p.create()
	case changed:
		w, err = p.update()
	}
	p.probing = markers.Write(w)
	return err
}

func (p *plan) create() (*write.Write, error) {
	probes := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: v1alpha1.NodePodProbeSpec{PodProbes: p.content},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(probes)
	if err != nil {
		return nil, fmt.Errorf("encode NodePodProbe: %w", err)
	}
	raw := kind().Named(p.key())
	raw.Object["spec"] = fields["spec"]
	return &write.Write{Verb: write.Create, Object: raw}, nil
}

// update writes the whole list, which the API server treats as one value, into the version that was looked at.
func (p *plan) update() (*write.Write, error) {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.probes.UID, "resourceVersion": p.probes.ResourceVersion},
		"spec":     map[string]any{"podProbes": p.content},
	})
	if err != nil {
		return nil, fmt.Errorf("encode NodePodProbe: %w", err)
	}
	named := kind().Named(p.key())
	return &write.Write{Verb: write.Patch, Object: named, Type: types.MergePatchType, Body: write.Bytes(data)}, nil
}

// removal returns the pass that deletes the NodePodProbe of a node that is gone.
func (s *snapshot) removal() pass {
	raw := kind().Named(s.key())
	raw.SetUID(s.probes.UID)
	deletion := &write.Write{Verb: write.Delete, Object: raw}
	if s.node != nil {
		return markers.Write(deletion)
	}
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return &removal{Pass: markers.Write(&write.Write{Verb: write.Get, Object: node}), deletion: deletion}
}

// removal is the pass that deletes a NodePodProbe once the API server has answered that the node is gone: a cache that
// lacks the node may lag behind.
type removal struct {
	*markers.Pass

	deletion *write.Write
}

// Answer takes the answer to the question about the node, and then that to the deletion.
func (r *removal) Answer(now time.Time, w *write.Write, answer write.Object, err error) []*write.Write {
	switch {
	case w.Verb == write.Get && apierrors.IsNotFound(err), answer != nil && answer.GetDeletionTimestamp() != nil:
		return []*write.Write{r.deletion}
	case w.Verb == write.Get:
		r.Outdated = true // it is asked again
	}
	return r.Pass.Answer(now, w, answer, err)
}

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
			p.marks = append(p.marks, workload.Cause{Write: w, Why: m.Cause()})
		}
	}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

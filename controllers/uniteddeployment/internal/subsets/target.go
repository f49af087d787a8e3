package subsets

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/spread"
)

// Target is a subset with what it is to be.
type Target struct {
	Subset *v1beta1.Subset
	// Child is nil where there is no workload yet.
	Child *Child
	// Rendered is the workload as it is to be.
	Rendered *unstructured.Unstructured
	// Write is what an update writes.
	Write applied.Write

	replicas, partition int32
	condition           spread.Condition
	reserved            spread.Reserved
	unschedulable       bool
	// err is why there is nothing rendered.
	err error
}

// current is how many replicas the workload has now.
func (t *Target) current() int32 {
	if t.Child == nil {
		return 0
	}
	return t.Child.Replicas
}

// render makes the workload of a subset.
func (s *Snapshot) render(p *Pass, t *Target) {
	w := Wanted{
		Owner: s.Object, Subset: t.effective(p.Update), Revision: p.Update, Replicas: t.replicas, Partition: t.partition,
		Name: Name(s.Object, t.Subset.Name, 0), MaxUnavailable: t.allowance(p.Update),
	}
	if t.Child != nil {
		w.Name = t.Child.Object.GetName()
	}
	t.Rendered, t.err = s.Template.Render(w)
}

// effective returns the subset with what its workload is to have of the term. OpenKruise drops matchFields, so that a
// workload that it has created lacks them: they come with the next template, and restart no pod before.
func (t *Target) effective(update string) *v1beta1.Subset {
	fields := t.Subset.NodeSelectorTerm.MatchFields
	if len(fields) == 0 || t.Child == nil || t.Child.Revision != update || t.Child.matches(fields) {
		return t.Subset
	}
	subset := *t.Subset
	subset.NodeSelectorTerm.MatchFields = nil
	return &subset
}

// matches reports whether a required term of the pods has fields.
func (c *Child) matches(fields []corev1.NodeSelectorRequirement) bool {
	required, _, _ := stored.Value[map[string]any](c.Object, "spec", "template", "spec", "affinity", "nodeAffinity",
		"requiredDuringSchedulingIgnoredDuringExecution")
	var selector corev1.NodeSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(required, &selector) != nil {
		return false
	}
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for i := range fields {
			if !slices.ContainsFunc(term.MatchFields, func(f corev1.NodeSelectorRequirement) bool {
				return equality.Semantic.DeepEqual(f, fields[i])
			}) {
				return false
			}
		}
		return true
	})
}

// allowance is how many pods of a subset may be unavailable during its update, where pods that find no node would
// otherwise take up the budget; nil for what the template says. It never falls during an update.
func (t *Target) allowance(update string) *int32 {
	c := t.Child
	if !t.reserved.Unschedulable || c == nil || c.Revision == update && c.Observed && c.Updated >= c.Pods-c.Partition {
		return nil
	}
	allowance := max(0, c.Replicas-c.Ready) + t.reserved.Overdue
	if c.Revision == update {
		allowance = max(allowance, c.MaxUnavailable())
	}
	return &allowance
}

// raised reports whether the workload still has the allowance of an earlier update. Defaults are percentages.
func (t *Target) raised() bool {
	return t.Child.MaxUnavailable() > 0 && Observe(t.Child.Kind, t.Rendered).MaxUnavailable() == 0
}

// compare decides what is to be written for a subset.
func (s *Snapshot) compare(p *Pass, t *Target) {
	c := t.Child
	switch {
	case c != nil && c.Terminating, t.err != nil:
		return
	case c == nil:
		if t.Write.Content, t.err = fingerprint(t.Rendered); t.err == nil {
			p.Creates = append(p.Creates, t)
		}
		return
	}
	p.Evictions = append(p.Evictions, s.stuck(p, t)...)
	lacks := Lacking(c.Object, t.Rendered)
	if len(lacks) == 0 && (s.Mode != spread.Reserving || !t.raised()) {
		return
	}
	content, err := fingerprint(t.Rendered)
	if t.err = err; err != nil {
		return
	}
	next, after := s.Known.Writes[t.Subset.Name].Next(applied.Attempt{
		UID: c.Object.GetUID(), Content: content, Lacks: lacks, Now: s.Now,
	})
	p.recheck(after)
	if next != nil {
		t.Write = *next
		p.Updates = append(p.Updates, t)
	}
}

func fingerprint(o *unstructured.Unstructured) (string, error) {
	n, err := revision.Fingerprint(o.Object)
	return strconv.FormatUint(uint64(n), 36), err
}

// stuck are pods of a StatefulSet that are to be updated and are not ready: those of an ordered update would keep it
// from going on for ever.
func (s *Snapshot) stuck(p *Pass, t *Target) []*corev1.Pod {
	if !t.Child.Stuck() || t.Child.Revision != p.Update {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Pods[t.Subset.Name]), func(pod *corev1.Pod) bool {
		_, ordinal, ok := ordinals.Split(pod.Name)
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		return !ok || ordinal < t.partition || ready || pod.DeletionTimestamp != nil ||
			pod.Labels[kruise.ControllerRevisionHashLabelKey] == p.Update
	})
}

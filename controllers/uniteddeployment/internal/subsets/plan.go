package subsets

import (
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/spread"
	"github.com/kruisekit/kruisekit/write"
)

// Decision is what there is to do. All of it follows from the snapshot. The writes are in the order of their fields:
// Store, Labels, on which the allocation was decided, then the workloads.
type Decision struct {
	// Targets are the subsets with what they are to be, in the order of the topology.
	Targets []*Target

	Resolution revision.Resolution
	// Store makes the template the newest revision.
	Store *revision.Storage
	// Update and Current are the names of revisions.
	Update, Current string

	Labels  []spread.PodLabel
	Creates []*Target
	// Updates are the writes of workloads that differ.
	Updates []*write.Write
	Deletes []*Child
	// Evictions are pods of a StatefulSet that keep its update from going on.
	Evictions []*corev1.Pod

	// Notes are the fields of the spec that the allocation cannot meet.
	Notes []note.Note
	// RecheckAfter is when to plan again although nothing changes; zero for never.
	RecheckAfter time.Duration
}

func (p *Decision) recheck(after time.Duration) {
	p.RecheckAfter = passes.Sooner(p.RecheckAfter, after)
}

// Plan decides what to do. The error is that of a template that no revision can hold.
func Plan(s *Snapshot) (*Decision, error) {
	p := &Decision{}
	if err := s.revise(p); err != nil {
		return nil, err
	}
	for i := range s.Object.Spec.Topology.Subsets {
		subset := &s.Object.Spec.Topology.Subsets[i]
		p.Targets = append(p.Targets, &Target{Subset: subset, Child: s.Children[subset.Name]})
	}
	for _, t := range p.Targets {
		s.schedule(p, t)
	}
	s.allocate(p)
	for _, t := range p.Targets {
		s.render(p, t)
		s.compare(p, t)
	}
	slices.SortFunc(p.Creates, func(a, b *Target) int { return strings.Compare(a.Subset.Name, b.Subset.Name) })
	for _, child := range s.Surplus {
		if !child.Terminating {
			p.Deletes = append(p.Deletes, child)
		}
	}
	return p, nil
}

// revise makes the template the newest revision.
func (s *Snapshot) revise(p *Decision) error {
	data, err := Encode(&s.Object.Spec.Template)
	if err != nil {
		return err
	}
	p.Resolution = revision.Resolve(revision.Input{
		Owner:      s.Object.Name,
		Data:       data,
		Have:       s.Revisions,
		Current:    s.Object.Status.CurrentRevision,
		Collisions: s.Object.Status.CollisionCount,
		Same:       SameData,
	})
	p.Update, p.Current = p.Resolution.Name, p.Resolution.Name
	if c := p.Resolution.Current; c != nil {
		p.Current = c.Name
	}
	p.Store, err = revision.Store(revision.Wanted{
		Resolution: p.Resolution,
		Namespace:  s.Object.Namespace,
		Owner:      *metav1.NewControllerRef(s.Object, OwnerKind()),
		Labels:     s.Template.Metadata.Labels,
	})
	return err
}

// schedule decides whether a subset is schedulable, and which of its pods are reserved.
func (s *Snapshot) schedule(p *Decision, t *Target) {
	state := spread.State{Condition: s.conditionOf(t.Subset.Name), Pods: s.Pods[t.Subset.Name]}
	switch {
	case s.Mode == spread.Fixed:
		return
	case s.Mode == spread.Adaptive && t.Child == nil:
		t.condition = state.Condition
	case s.Mode == spread.Adaptive:
		v := spread.Schedule(state, s.Windows, s.Now)
		t.condition, t.unschedulable = v.Condition, v.Unschedulable
		p.recheck(v.RecheckAfter)
	default:
		t.reserved = spread.Reserve(spread.Reservation{
			State: state, Revision: p.Update, UpdatingSince: s.updatingSince(p),
			Partition: spread.Partition(s.partitions(), t.Subset.Name, t.current()),
		}, s.Windows, s.Now)
		t.condition, t.unschedulable = t.reserved.Condition, t.reserved.Unschedulable
		p.Labels = append(p.Labels, t.reserved.Labels...)
		p.recheck(t.reserved.RecheckAfter)
	}
}

// updatingSince is when the update began; zero without one.
func (s *Snapshot) updatingSince(p *Decision) time.Time {
	if p.Current == p.Update {
		return time.Time{}
	}
	for _, c := range s.Object.Status.Conditions {
		if c.Type == v1beta1.UnitedDeploymentUpdated && c.Status == corev1.ConditionFalse {
			return c.LastTransitionTime.Time
		}
	}
	return s.Now
}

// allocate divides the replicas.
func (s *Snapshot) allocate(p *Decision) {
	in := spread.Input{Replicas: s.Object.Spec.Replicas, Mode: s.Mode}
	for _, t := range p.Targets {
		subset := spread.Subset{
			Name:          t.Subset.Name,
			Replicas:      t.Subset.Replicas,
			MinReplicas:   t.Subset.MinReplicas,
			MaxReplicas:   t.Subset.MaxReplicas,
			Unschedulable: t.unschedulable,
			Marked:        s.marked(t.Subset.Name),
			Reserved:      t.reserved.Pods,
		}
		if t.Child != nil {
			subset.Exists, subset.Current, subset.Ready = true, t.Child.Replicas, t.Child.Ready
		}
		in.Subsets = append(in.Subsets, subset)
	}
	allocation := spread.Allocate(in)
	p.Notes = allocation.Notes
	for i, t := range p.Targets {
		t.replicas = allocation.Replicas[i]
		t.partition = spread.Partition(s.partitions(), t.Subset.Name, t.replicas)
		if s.Mode == spread.Reserving {
			t.condition = t.reserved.Grow(s.marked(t.Subset.Name), t.current(), t.replicas, s.Now)
		}
	}
}

// Fault returns why the spec cannot be met; nil for nothing.
func (p *Decision) Fault() error {
	var texts []string
	for _, n := range p.Notes {
		texts = append(texts, n.Message())
	}
	for _, t := range p.Targets {
		if t.err != nil {
			texts = append(texts, t.Subset.Name+": "+t.err.Error())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

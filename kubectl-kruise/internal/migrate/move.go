package migrate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// createCloneSet creates a CloneSet from a Deployment.
func (m migration) createCloneSet() error {
	_, d, err := m.deployment()
	if err != nil {
		return err
	}
	set := CloneSetOf(d, m.flags.target)
	if m.flags.copies {
		set.Spec.Replicas = ptr.To(ptr.Deref(d.Spec.Replicas, 1))
	}
	if err := m.writeCloneSet(set); err != nil {
		return err
	}
	dryRun := map[string]string{"client": " (dry run)", "server": " (server dry run)"}[m.Text("dry-run")]
	m.report("Successfully created from Deployment/%s to CloneSet/%s%s", m.flags.source, m.flags.target, dryRun)
	return nil
}

func (m migration) writeCloneSet(set *v1beta1.CloneSet) error {
	mapping, err := m.Mapping(kind(kinds.CloneSet))
	if err != nil {
		return err
	}
	written, err := kinds.WriteCloneSet(mapping.GroupVersionKind, set)
	if err != nil {
		return err
	}
	_, err = m.Create(written)
	return err
}

// movePods moves pods from a Deployment to a CloneSet that exists.
func (m migration) movePods() error {
	_, d, err := m.deployment()
	if err != nil {
		return err
	}
	_, set, err := m.cloneSet()
	if err != nil {
		return err
	}
	source, to := ptr.Deref(d.Spec.Replicas, 1), ptr.Deref(set.Spec.Replicas, 1)
	moved := m.flags.replicas
	if moved < 0 || moved > source {
		moved = source
	}
	if owner := metav1.GetControllerOf(d); owner != nil {
		return fmt.Errorf("Deployment/%s belongs to %s/%s, which sets its replicas", d.Name, owner.Kind, owner.Name)
	}
	if m.Text("dry-run") != "none" {
		m.report("Migration: Deployment/%s %d -> %d, CloneSet/%s %d -> %d (dry run)", m.flags.source, source, source-moved,
			m.flags.target, to, to+moved)
		return nil
	}
	last := ""
	err = m.until("migrate "+m.flags.source, func() (bool, error) {
		action, err := m.step(source-moved, to+moved)
		if line := fmt.Sprintf("Migration progress: Deployment/%s %d -> %d, CloneSet/%s %d -> %d", m.flags.source,
			action.Source, source-moved, m.flags.target, action.Target, to+moved); err == nil && line != last {
			m.report("%s", line)
			last = line
		}
		return action.Done, err
	})
	if err != nil {
		return err
	}
	m.report("Successfully migrated %d replicas from Deployment/%s to CloneSet/%s", moved, m.flags.source, m.flags.target)
	return nil
}

// step takes the next step of a move.
func (m migration) step(finalSource, finalTarget int32) (Action, error) {
	from, d, err := m.deployment()
	if err != nil {
		return Action{}, err
	}
	to, set, err := m.cloneSet()
	if err != nil {
		return Action{}, err
	}
	now := Moving{
		Source: ptr.Deref(d.Spec.Replicas, 1), Target: ptr.Deref(set.Spec.Replicas, 1),
		FinalSource: finalSource, FinalTarget: finalTarget, Surge: m.flags.surge,
	}
	if set.Status.ObservedGeneration >= set.Generation {
		now.Available = set.Status.AvailableReplicas
	}
	action := Move(now)
	if action.Target != now.Target {
		err = m.scale(to, now.Target, action.Target)
	}
	if action.Source != now.Source && err == nil {
		err = m.scale(from, now.Source, action.Source)
	}
	return action, err
}

func (m migration) scale(o target.Object, from, to int32) error {
	path := write.Pointer("spec", "replicas")
	_, err := m.Patch(o, []write.Op{write.Test(path, from), write.Replace(path, to)}, "")
	return err
}

func (m migration) deployment() (target.Object, *appsv1.Deployment, error) {
	o, err := m.Get(builtIn("Deployment"), m.namespace, m.flags.source)
	if err != nil {
		return o, nil, err
	}
	d, err := kinds.Read[appsv1.Deployment](o.Unstructured)
	return o, d, err
}

func (m migration) cloneSet() (target.Object, *v1beta1.CloneSet, error) {
	o, err := m.Get(kind(kinds.CloneSet), m.namespace, m.flags.target)
	if err != nil {
		return o, nil, err
	}
	set, err := kinds.ReadCloneSet(o.Unstructured)
	return o, set, err
}

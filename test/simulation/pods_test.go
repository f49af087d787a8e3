package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// groupKey is the label that joins the pods of a group: the name of its leader.
const groupKey = "simulation/group"

// active are the pods that are neither ended nor being deleted, by name.
func (t *turn) active() []*corev1.Pod {
	var all []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(t.pods)) {
		if pod := t.pods[name]; pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			all = append(all, pod)
		}
	}
	return all
}

func (t *turn) size() int { return max(t.Spec.Size, 1) }

// instances are the pods, or the groups of pods, that are scaled as one. A group whose leader is gone goes, too.
func (t *turn) instances() []scale.Instance {
	byName := map[string]*scale.Instance{}
	for _, name := range slices.Sorted(maps.Keys(t.pods)) {
		pod := t.pods[name]
		group := groupOf(pod)
		i := byName[group]
		if i == nil {
			leader := t.pods[group]
			i = &scale.Instance{Name: group, Size: t.size(), Updated: true, Terminating: leader == nil || leader.DeletionTimestamp != nil}
			byName[group] = i
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		i.Pods = append(i.Pods, pod)
		i.Updated = i.Updated && pod.Labels[pub.PodRevisionLabelKey] == t.update.Name
		_, doomed := pod.Labels[pub.SpecifiedDeleteKey]
		i.MarkedForDeletion = i.MarkedForDeletion || doomed
	}
	all := make([]scale.Instance, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, *byName[name])
	}
	return all
}

func groupOf(pod *corev1.Pod) string {
	if group := pod.Labels[groupKey]; group != "" {
		return group
	}
	return pod.Name
}

func (t *turn) slots() []string {
	names := make([]string, t.Spec.Replicas)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Name, i)
	}
	return names
}

// each does something with every pod of an instance, as it is now.
func (t *turn) each(i scale.Instance, do func(*corev1.Pod) error) error {
	var errs []error
	for _, pod := range i.Pods {
		errs = append(errs, do(t.pods[pod.Name]))
	}
	return errors.Join(errs...)
}

// mendGroups ends what is left of groups whose leader is gone, and completes the others. It says whether there was
// anything to do.
func (t *turn) mendGroups() (mended bool, err error) {
	if t.size() == 1 {
		return false, nil
	}
	var errs []error
	for _, i := range t.instances() {
		if i.Terminating {
			mended = mended || len(i.Pods) > 0
			errs = append(errs, t.each(i, t.remove))
			continue
		}
		if slices.ContainsFunc(i.Pods, isLeaving) {
			errs = append(errs, t.each(i, t.hang))
		}
		leader := t.pods[i.Name]
		for n := 1; n < t.size(); n++ {
			if name := worker(leader, n); t.pods[name] == nil {
				mended = true
				errs = append(errs, t.createPod(metav1.ObjectMeta{Name: name, Labels: map[string]string{groupKey: leader.Name}}, leader.Labels[pub.PodRevisionLabelKey]))
			}
		}
	}
	return mended, errors.Join(errs...)
}

func isLeaving(pod *corev1.Pod) bool {
	return lifecycle.StateOf(pod) == pub.LifecycleStatePreparingDelete
}

// hang leaves a pod to its hook before its deletion, as others of its group have been.
func (t *turn) hang(pod *corev1.Pod) error {
	_, move := lifecycle.BeforeDelete(t.situation(pod))
	return t.move(pod, move)
}

func worker(leader *corev1.Pod, n int) string { return fmt.Sprintf("%s-%d", leader.Name, n) }

// create makes an instance: a pod, or the leader of a group. The rest of the group is missing then, and follows.
func (t *turn) create(b scale.Creation) error {
	name := metav1.ObjectMeta{Name: b.Slot}
	if b.Slot == "" {
		name.GenerateName = t.Name + "-"
	}
	if b.Updated {
		return t.createPod(name, t.update.Name)
	}
	return t.createPod(name, t.current.Name)
}

func (t *turn) createPod(name metav1.ObjectMeta, revisionName string) error {
	template, err := t.template(revisionName)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
	pod.Name, pod.GenerateName = name.Name, name.GenerateName
	maps.Copy(pod.Labels, name.Labels)
	pod.Labels[pub.PodRevisionLabelKey] = revisionName
	pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStatePreparingNormal)
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: pub.InPlaceUpdateReady})
	_, err = t.api.create(pod)
	return err
}

func (t *turn) template(revisionName string) (*corev1.PodTemplateSpec, error) {
	r := t.revisions[revisionName]
	if r == nil {
		return nil, fmt.Errorf("revision %s is gone", revisionName)
	}
	return revision.Decode(r.Data.Raw)
}

// remove deletes a pod, unless a hook holds it.
func (t *turn) remove(pod *corev1.Pod) error {
	verdict, move := lifecycle.BeforeDelete(t.situation(pod))
	if verdict == lifecycle.Go {
		return t.api.delete(pod)
	}
	return t.move(pod, move)
}

// updatePod moves a pod to a revision, in place where that is possible.
func (t *turn) updatePod(pod *corev1.Pod, target *appsv1.ControllerRevision) error {
	if pod.Labels[pub.PodRevisionLabelKey] == target.Name {
		return nil // it is ahead of the others of its group
	}
	change, err := t.change(pod.Labels[pub.PodRevisionLabelKey], target.Name)
	var blocked *inplace.BlockedError
	switch {
	case t.Spec.Recreate || errors.As(err, &blocked):
		return t.recreate(pod)
	case err != nil:
		return err
	}
	verdict, move := lifecycle.BeforeUpdate(t.situation(pod))
	if verdict != lifecycle.Go {
		return t.move(pod, move)
	}
	update := inplace.Update{
		Change: change, Revision: target.Name, GraceSeconds: t.Spec.GraceSeconds,
		Labels: map[string]string{pub.LifecycleStateKey: string(pub.LifecycleStateUpdating)},
	}
	_, err = t.follow(pod, func(pod *corev1.Pod) (inplace.Action, error) {
		update.Pod = pod
		return inplace.Next(update, t.rules, t.now)
	})
	return err
}

// change leads from one revision to another.
func (t *turn) change(from, to string) (*inplace.Change, error) {
	before, err := t.template(from)
	if err != nil {
		return nil, err
	}
	after, err := t.template(to)
	if err != nil {
		return nil, err
	}
	return inplace.Diff(before, after, t.options)
}

// recreate deletes a pod so that it comes back updated. Where one pod is as good as another, it is chosen for deletion
// only: the next plan deletes it, when there is another one for it.
func (t *turn) recreate(pod *corev1.Pod) error {
	if t.Spec.Slots {
		return t.remove(pod)
	}
	if _, chosen := pod.Labels[pub.SpecifiedDeleteKey]; chosen {
		return nil
	}
	return t.merge(pod, "", map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "labels": map[string]string{pub.SpecifiedDeleteKey: "true"},
	}})
}

// move makes the writes of a move of the lifecycle, if there is any.
func (t *turn) move(pod *corev1.Pod, m lifecycle.Move) error {
	for {
		w, err := m.Next(pod, t.now)
		if err != nil || w == nil {
			return err
		}
		data, err := w.Data()
		if err != nil {
			return err
		}
		if pod, err = t.patch(change{pod: pod.Name, subresource: w.Subresource, kind: w.Type, data: data}); err != nil {
			return err
		}
	}
}

// merge sends a strategic merge patch.
func (t *turn) merge(pod *corev1.Pod, subresource string, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = t.patch(change{pod: pod.Name, subresource: subresource, kind: types.StrategicMergePatchType, data: data})
	return err
}

// patch keeps the pod as it came back.
func (t *turn) patch(c change) (*corev1.Pod, error) {
	pod, err := t.api.patch(c)
	if err == nil {
		t.pods[pod.Name] = pod
	}
	return pod, err
}

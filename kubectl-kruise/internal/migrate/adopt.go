package migrate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// adoptPods lets a CloneSet take the pods of a Deployment over.
func (m migration) adoptPods() error {
	_, d, err := m.deployment()
	switch {
	case apierrors.IsNotFound(err): // an earlier run has deleted it, or there is no such Deployment
	case err != nil:
		return err
	default:
		if err := m.writeCloneSet(Adopting(d, m.flags.target)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := m.until("observe CloneSet "+m.flags.target, func() (bool, error) {
		_, set, err := m.cloneSet()
		if err != nil {
			return false, err
		}
		if set.Annotations[fromKey] != m.flags.source {
			return false, fmt.Errorf("cloneset %s takes no pods over from Deployment %s", set.Name, m.flags.source)
		}
		return set.Status.ObservedGeneration >= set.Generation && set.Status.UpdateRevision != "", nil
	}); err != nil {
		return err
	}
	if err := m.orphan(builtIn("Deployment"), m.flags.source); err != nil {
		return err
	}
	if err := m.orphanReplicaSets(); err != nil {
		return err
	}
	n, err := m.adoptOrphans()
	if err != nil {
		return err
	}
	if err := m.finishCloneSet(); err != nil {
		return err
	}
	m.report("Successfully migrated %d replicas from Deployment/%s to CloneSet/%s in place", n, m.flags.source,
		m.flags.target)
	return nil
}

// orphanReplicaSets deletes the ReplicaSets that the Deployment has left, once the garbage collector has freed them.
func (m migration) orphanReplicaSets() error {
	o, _, err := m.cloneSet()
	if err != nil {
		return err
	}
	selector, err := pods.Selector(o.Unstructured)
	if err != nil {
		return err
	}
	return m.until("free ReplicaSets", func() (bool, error) {
		left, err := m.List(builtIn("ReplicaSet"), m.namespace, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err
		}
		for i := range left {
			if owner := metav1.GetControllerOf(&left[i]); owner != nil {
				if owner.Kind != "Deployment" || owner.Name != m.flags.source {
					return false, fmt.Errorf("replicaset %s belongs to %s %s", left[i].GetName(), owner.Kind, owner.Name)
				}
				continue
			}
			if err := m.orphan(builtIn("ReplicaSet"), left[i].GetName()); err != nil {
				return false, err
			}
		}
		return len(left) == 0, nil
	})
}

// adoptOrphans makes the pods those of the CloneSet, and returns how many there are.
func (m migration) adoptOrphans() (int, error) {
	o, set, err := m.cloneSet()
	if err != nil {
		return 0, err
	}
	selector, err := pods.Selector(o.Unstructured)
	if err != nil {
		return 0, err
	}
	n := 0
	err = m.until("adopt pods", func() (bool, error) {
		n = 0
		return m.eachPod(selector, func(pod *corev1.Pod) ([]write.Op, bool, error) {
			if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "ReplicaSet" {
				return nil, false, nil // the garbage collector has not freed it yet
			}
			n++
			ops, err := Adopt(pod, set, o.GetAPIVersion(), rand.String(5))
			return ops, true, err
		})
	})
	return n, err
}

// eachPod patches the pods that a selector selects, and reports whether all are ready for it. Pods that terminate or
// have finished are left alone.
func (m migration) eachPod(
	selector string, decide func(*corev1.Pod) (ops []write.Op, done bool, err error),
) (bool, error) {
	items, err := m.List(schema.GroupKind{Kind: "Pod"}, m.namespace, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return false, err
	}
	all := true
	for i := range items {
		pod, err := kinds.Read[corev1.Pod](&items[i])
		if err != nil {
			return false, err
		}
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		ops, done, err := decide(pod)
		if err != nil {
			return false, err
		}
		all = all && done
		if len(ops) == 0 {
			continue
		}
		o, err := m.At(schema.GroupKind{Kind: "Pod"}, &items[i])
		if err != nil {
			return false, err
		}
		if _, err := m.Patch(o, ops, ""); err != nil {
			return false, err
		}
	}
	return all, nil
}

// finishCloneSet lets the CloneSet act, once it counts the pods that it has taken over.
func (m migration) finishCloneSet() error {
	return m.until("count the pods of CloneSet "+m.flags.target, func() (bool, error) {
		o, set, err := m.cloneSet()
		if err != nil {
			return false, err
		}
		if set.Annotations[fromKey] == "" {
			return true, nil
		}
		if set.Status.Replicas < ptr.Deref(set.Spec.Replicas, 1) {
			return false, nil
		}
		ops := append(target.Unchanged(o.Unstructured), write.SetAnnotations(o, map[string]*string{fromKey: nil})...)
		ops = append(ops, write.Remove("/spec/scaleStrategy/maxUnavailable"))
		ops = append(ops, target.Set(o.Unstructured, false, kinds.PausePath(o.GroupVersionKind())...)...)
		_, err = m.Patch(o, ops, "")
		return err == nil, err
	})
}

// adoptStatefulSet lets a StatefulSet of apps.kruise.io take the pods of one of apps over.
func (m migration) adoptStatefulSet() error {
	if m.flags.target != m.flags.source {
		return fmt.Errorf("the pods of a StatefulSet have its name: --dst-name must be %s", m.flags.source)
	}
	from, err := m.Get(builtIn(kinds.StatefulSet), m.namespace, m.flags.source)
	switch {
	case apierrors.IsNotFound(err): // an earlier run has deleted it, or there is no such StatefulSet
	case err != nil:
		return err
	default:
		if err := m.writeStatefulSet(from.Unstructured); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := m.orphan(builtIn(kinds.StatefulSet), m.flags.source); err != nil {
		return err
	}
	n := int32(0)
	err = m.until("adopt pods", func() (done bool, err error) {
		n, done, err = m.relabel()
		return done, err
	})
	if err != nil {
		return err
	}
	m.report("Successfully migrated %d replicas from StatefulSet/%s to StatefulSet.apps.kruise.io/%s in place", n,
		m.flags.source, m.flags.source)
	return nil
}

func (m migration) writeStatefulSet(from *unstructured.Unstructured) error {
	read, err := kinds.Read[appsv1.StatefulSet](from)
	if err != nil {
		return err
	}
	mapping, err := m.Mapping(kind(kinds.StatefulSet))
	if err != nil {
		return err
	}
	written, err := kinds.WriteStatefulSet(mapping.GroupVersionKind, StatefulSetOf(read))
	if err != nil {
		return err
	}
	_, err = m.Create(written)
	return err
}

// relabel gives the adopted pods the revision of the StatefulSet, and lets it act once it has them all.
func (m migration) relabel() (int32, bool, error) {
	o, err := m.Get(kind(kinds.StatefulSet), m.namespace, m.flags.source)
	if err != nil {
		return 0, false, err
	}
	set, err := kinds.ReadStatefulSet(o.Unstructured)
	if err != nil {
		return 0, false, err
	}
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	if set.Annotations[fromKey] == "" {
		return replicas, true, nil
	}
	s := set.Status
	if s.ObservedGeneration < set.Generation || s.UpdateRevision == "" || s.Replicas < replicas {
		return replicas, false, nil
	}
	selector, err := pods.Selector(o.Unstructured)
	if err != nil {
		return replicas, false, err
	}
	adopted, err := m.eachPod(selector, func(pod *corev1.Pod) ([]write.Op, bool, error) {
		if !metav1.IsControlledBy(pod, set) {
			return nil, false, nil
		}
		return Relabel(pod, set.Status.UpdateRevision), true, nil
	})
	if err != nil || !adopted || set.Status.UpdatedReplicas < replicas {
		return replicas, false, err
	}
	ops := append(target.Unchanged(o.Unstructured), write.SetAnnotations(o, map[string]*string{fromKey: nil})...)
	ops = append(ops, target.Set(o.Unstructured, false, kinds.PausePath(o.GroupVersionKind())...)...)
	_, err = m.Patch(o, ops, "")
	return replicas, err == nil, err
}

// orphan deletes an object, leaves what it controls, and waits until it is gone.
func (m migration) orphan(k schema.GroupKind, name string) error {
	mapping, err := m.Mapping(k)
	if err != nil {
		return err
	}
	dynamic, err := m.Factory.DynamicClient()
	if err != nil {
		return err
	}
	client := dynamic.Resource(mapping.Resource).Namespace(m.namespace)
	err = client.Delete(m.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", k.Kind, name, err)
	}
	return m.until("delete "+name, func() (bool, error) {
		_, err := client.Get(m.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

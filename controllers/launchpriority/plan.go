package launchpriority

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do for a pod now.
type plan struct {
	*snapshot
	launch.Plan

	// over reports that nothing is left to do: the pod is gone.
	over bool
}

func newPlan(s *snapshot) *plan {
	return &plan{snapshot: s, Plan: launch.Next(launch.Input{Pod: s.pod, Barrier: s.barrier, Policy: s.policy})}
}

// pass is all that is written. An error leaves the rest to the next pass.
func (p *plan) pass() driver.Pass[*write.Write] {
	return driver.Sequence(
		driver.Then("read pod", p.ask, p.isThere),
		driver.Then("delete the barrier of a former pod", p.remove, ignoreNotFound),
		driver.Then("create barrier", p.create, nil),
		driver.Then("add keys to barrier", p.add, nil),
		driver.Then("mark pod", p.complete, nil),
	)
}

// named is the pod for a write or a question, of whose answer the metadata is decoded.
func (p *plan) named() *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.pod.Namespace, Name: p.pod.Name, UID: p.pod.UID,
	}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

// ask asks, before a deletion, whether the pod is the one that has its name now.
func (p *plan) ask() (*write.Write, error) {
	if p.Remove == "" {
		return nil, nil
	}
	return &write.Write{Verb: write.Get, Object: p.named()}, nil
}

func (p *plan) isThere(answer write.Object, err error) error {
	if apierrors.IsNotFound(err) {
		p.over = true
		return nil
	}
	if err != nil {
		return err
	}
	// The event of another pod of this name comes.
	p.over = answer.GetUID() != p.pod.UID || answer.GetDeletionTimestamp() != nil
	return nil
}

func (p *plan) remove() (*write.Write, error) {
	if p.over || p.Remove == "" {
		return nil, nil
	}
	former := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.barrier.Namespace, Name: p.barrier.Name, UID: p.Remove,
	}}
	return &write.Write{Verb: write.Delete, Object: former}, nil
}

func ignoreNotFound(_ write.Object, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p *plan) create() (*write.Write, error) {
	if p.over || p.Create == nil {
		return nil, nil
	}
	return &write.Write{Verb: write.Create, Object: p.Create}, nil
}

func (p *plan) add() (*write.Write, error) {
	if p.over || len(p.Add) == 0 {
		return nil, nil
	}
	patch, err := launch.AddPatch(p.barrier, p.Add)
	if err != nil {
		return nil, err
	}
	return &write.Write{Verb: write.Patch, Object: p.barrier, Type: launch.PatchType, Body: write.Bytes(patch)}, nil
}

// complete marks the pod, once: the cache may not know yet.
func (p *plan) complete() (*write.Write, error) {
	if p.over || !p.Complete || p.marked {
		return nil, nil
	}
	patch, err := launch.CompletePatch(p.pod, p.policy)
	if err != nil {
		return nil, err
	}
	return &write.Write{Verb: write.Patch, Object: p.named(), Type: launch.PatchType, Body: write.Bytes(patch)}, nil
}

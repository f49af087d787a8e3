//go:build simulated || nightly

package native_test

import (
	"context"
	"errors"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// watch follows the Deployment, and compares what its status says with its pods: neither status.updatedReplicas nor
// kubectl rollout status is ahead of them.
func (f *fleet) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := f.live.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(f.Namespace),
			client.MatchingFields{"metadata.name": f.name})
		if err != nil {
			continue
		}
		for e := range w.ResultChan() {
			if _, is := e.Object.(*appsv1.Deployment); is {
				f.judgeStatus()
			}
		}
	}
}

// judgeStatus lists the pods. What it finds counts if the Deployment has stayed the same meanwhile.
func (f *fleet) judgeStatus() {
	d := f.object()
	if f.live.Get(f.Context(), client.ObjectKeyFromObject(d), d) != nil ||
		d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas == 0 {
		return
	}
	var list corev1.PodList
	if f.live.List(f.Context(), &list, client.InNamespace(f.Namespace), client.MatchingLabels{"app": f.name}) != nil {
		return
	}
	var stale []string
	for k := range list.Items {
		// A pod that was just created, or is terminating, is not in the status.
		if pod := &list.Items[k]; pod.DeletionTimestamp == nil && !isNew(pod) && !hasImage(pod, d) {
			stale = append(stale, pod.Name+" "+pod.Spec.Containers[0].Image)
		}
	}
	now := &appsv1.Deployment{}
	if f.live.Get(f.Context(), client.ObjectKeyFromObject(d), now) != nil || now.ResourceVersion != d.ResourceVersion {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judged++
	if int(d.Status.UpdatedReplicas)+len(stale) > int(d.Status.Replicas) {
		f.breaks("%s: %d of %d are updated, and there are %v, wanted %s", f.name, d.Status.UpdatedReplicas, d.Status.Replicas,
			stale, d.Spec.Template.Spec.Containers[0].Image)
	}
}

func isNew(pod *corev1.Pod) bool { return time.Since(pod.CreationTimestamp.Time) < settling }

func hasImage(pod *corev1.Pod, d *appsv1.Deployment) bool {
	image, s := d.Spec.Template.Spec.Containers[0].Image, pod.Status.ContainerStatuses
	return pod.Spec.Containers[0].Image == image && len(s) == 1 && s[0].Image == image
}

// judgeWrite takes a write before it is made: a pod leaves service when enough others serve.
func (f *fleet) judgeWrite(pod *corev1.Pod, data string) {
	if !strings.Contains(data, `"/spec/containers/`) {
		return
	}
	var list corev1.PodList
	if f.live.List(f.Context(), &list, client.InNamespace(f.Namespace), client.MatchingLabels{"app": f.name}) != nil {
		return
	}
	others, serves := 0, false
	for k := range list.Items {
		switch other := &list.Items[k]; {
		case !isUp(other):
		case other.Name == pod.Name:
			serves = true
		default:
			others++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if serves && others < int(f.least)-1 {
		f.breaks("%s leaves service, and %d of at least %d others serve", pod.Name, others, f.least-1)
	}
}

// hold applies the policy, and creates the Deployments. Before Kubernetes 1.36 it does neither.
func (c *chaos) hold() {
	c.Helper()
	if c.minor < 36 {
		return
	}
	const policy = "../../config/native/hold/policy.yaml"
	if out, err := c.world.Kubectl(c.Context(), "apply", "-f", policy); err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"web", "api", "shop"} {
		f := &fleet{
			chaos: c, name: name, replicas: 4, least: 4, rolls: true, pods: map[types.UID]*corev1.Pod{},
		}
		d := f.object()
		if err := c.live.Create(c.Context(), d); err != nil {
			c.Fatal(err)
		}
		c.fleets = append(c.fleets, f)
	}
	d := c.fleets[0].object()
	c.Until(func() error {
		changed := d.DeepCopy()
		changed.Spec.Template.Spec.Containers[0].Image = "example.com/app:held"
		if err := c.live.Update(c.Context(), changed, client.DryRunAll); err != nil {
			return err
		}
		if _, held := changed.Annotations[adapter.HoldKey]; !held || !changed.Spec.Paused {
			return errors.New("the policy does not hold")
		}
		return nil
	})
}

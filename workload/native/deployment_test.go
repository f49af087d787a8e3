package native_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/workload/native"
)

func setImage(tag string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:" + tag }
}

// TestDeploymentLaws: whatever happens to a Deployment, its pods are in one ReplicaSet where a change is possible in
// place, each changes once for a template, enough of them serve, none counts as updated too soon, and in the end all is
// as the built-in controller alone would have left it.
func TestDeploymentLaws(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 150 {
				w.random()
			}
			w.user(func(d *appsv1.Deployment) {
				d.Annotations[native.RolloutKey] = "{}"
				if _, held := d.Annotations[native.HoldKey]; !held {
					d.Spec.Paused = false
				}
				if seed%2 == 1 { // as it is, by the built-in controller
					delete(d.Annotations, native.RolloutKey)
				}
			})
			if seed%2 == 0 {
				w.user(setImage("last"))
			}
			w.settle()
			w.end()
			for _, text := range w.broken {
				t.Error(text)
			}
			if t.Failed() {
				t.Log(w.story())
			}
		})
	}
}

// random does one thing that may happen. What fails is done again, as a controller does.
func (w *world) random() {
	w.Helper()
	for k := range w.caches { // they lag, each as it likes, and never go back
		if w.caches[k] == nil || w.rand.IntN(5) == 0 {
			w.caches[k] = w.Server.Snapshot()
		}
	}
	switch n := w.rand.IntN(40); {
	case n < 12:
		w.builtIn.Cache = w.caches[0]
		_ = w.builtIn.Step(w.Context(), w.name)
	case n < 22:
		w.left = 1 << 30
		if w.rand.IntN(3) == 0 {
			w.left = 1 + w.rand.IntN(4)
		}
		_ = w.operate(w.caches[1])
	case n < 32:
		w.RunPods()
		w.Advance(1e9)
	default:
		w.randomUser(n)
	}
}

func (w *world) randomUser(n int) {
	switch n {
	case 32, 33, 34:
		w.user(setImage(fmt.Sprint(w.rand.IntN(4))))
	case 35:
		w.user(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(w.rand.IntN(6))) })
	case 36:
		for _, pod := range w.pods { // any one
			_ = w.Server.Delete(w.Context(), pod)
			break
		}
	case 37:
		w.user(func(d *appsv1.Deployment) { d.Spec.Paused = !d.Spec.Paused })
	case 38:
		w.user(func(d *appsv1.Deployment) {
			env := []corev1.EnvVar{{Name: "A", Value: fmt.Sprint(w.rand.IntN(3))}}
			d.Spec.Template.Spec.Containers[0].Env = env
		})
	case 39:
		w.user(func(d *appsv1.Deployment) {
			if _, has := d.Annotations[native.RolloutKey]; has {
				delete(d.Annotations, native.RolloutKey)
			} else {
				d.Annotations[native.RolloutKey] = "{}"
			}
		})
	}
}

// end expects what the built-in controller alone would have reached.
func (w *world) end() {
	w.Helper()
	d := w.latest
	if _, held := d.Annotations[native.HoldKey]; held || d.Spec.Paused {
		w.Errorf("the Deployment is paused: %v", d.Annotations)
	}
	if s := d.Status; s.UpdatedReplicas != *d.Spec.Replicas || s.Replicas != s.UpdatedReplicas {
		w.Errorf("status %+v", s)
	}
	if len(w.pods) != int(*d.Spec.Replicas) {
		w.Errorf("%d pods", len(w.pods))
	}
	for _, pod := range w.pods {
		if !has(pod, &d.Spec.Template) || !serves(pod) {
			w.Errorf("pod %s runs %s", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
	if len(w.sets) > 4 {
		w.Errorf("%d ReplicaSets, and 3 old ones may be", len(w.sets))
	}
}

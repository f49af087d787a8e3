package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/rig/operatortest"
	"github.com/kruisekit/kruisekit/workload"
)

// world is the operator over objects in memory.
type world struct {
	*testing.T
	*objects.Model

	set *LeaderWorker
	// pods are those of the server, by name. Once all groups serve, so few may be unavailable.
	pods        map[string]*corev1.Pod
	established bool
	deletedAt   time.Time

	// process is the operator.
	process *podbench.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Model: objects.NewModel(t, &LeaderWorkerList{}, addToScheme), pods: map[string]*corev1.Pod{}}
	w.set = &LeaderWorker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	w.set.SetGroupVersionKind(kind())
	w.set.Spec.Replicas, w.set.Spec.Size, w.set.Spec.MaxUnavailable = 2, 3, 1
	w.set.Spec.Leader, w.set.Spec.Worker = operatortest.Template("leader:1"), operatortest.Template("worker:1")
	w.process = &podbench.Process{Server: w.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
		return newReconciler(c, w.Server, w.Now)
	}}
	w.Reconciler = w.process
	w.Server.OnChange(w.changed)
	w.Put(w.set)
	w.Eventually(w.unsettled("1"))
	w.established = true
	return w
}

// changed holds after each write: no container changes in traffic, workers follow their leader, and no more groups than
// allowed are out of traffic.
func (w *world) changed(before, after client.Object) {
	if pod, is := before.(*corev1.Pod); is {
		delete(w.pods, pod.Name)
	}
	pod, is := after.(*corev1.Pod)
	if !is {
		return
	}
	w.pods[pod.Name] = pod
	if pod.DeletionTimestamp != nil {
		w.deletedAt = w.Clock
	}
	group := pod.Labels[groupLabel]
	if leader := w.pods[group]; leader == nil && pod.DeletionTimestamp == nil {
		w.Errorf("%s has no leader", pod.Name)
	} else if w.established && pod.DeletionTimestamp == nil && operatortest.Tag(pod) > operatortest.Tag(leader) {
		w.Errorf("%s is updated before its leader", pod.Name)
	}
	serving, changing, whole := map[string]int32{}, map[string]bool{}, int32(0)
	for _, pod := range w.pods {
		group := pod.Labels[groupLabel]
		if s := pod.Status.ContainerStatuses; len(s) > 0 && s[0].Image != pod.Spec.Containers[0].Image {
			changing[group] = true
		}
		if operatortest.Serves(pod) {
			serving[group]++
		}
	}
	for group, n := range serving {
		if n > 0 && changing[group] {
			w.Errorf("%s changes while %d of its pods are in traffic", group, n)
		}
		if n == w.set.Spec.Size {
			whole++
		}
	}
	if w.established && whole < w.set.Spec.Replicas-w.set.Spec.MaxUnavailable {
		w.Errorf("%d groups are in traffic", whole)
	}
}

// unsettled returns what is not yet as the LeaderWorker asks for.
func (w *world) unsettled(version string) func() error {
	return func() error {
		w.Look(w.set)
		pods := w.Pods()
		if want := int(w.set.Spec.Replicas * w.set.Spec.Size); len(pods) != want {
			return fmt.Errorf("%d pods, want %d", len(pods), want)
		}
		for _, pod := range pods {
			revision := pod.Labels[kruise.PodRevisionLabelKey]
			if !operatortest.Serves(pod) || operatortest.Tag(pod) != version || revision != w.set.Status.CurrentRevision {
				return fmt.Errorf("pod %s has %s of %s", pod.Name, operatortest.Tag(pod), revision)
			}
		}
		return nil
	}
}

// TestSetup adds the operator to a manager that is not started.
func TestSetup(t *testing.T) { operatortest.Setup(t, add) }

// TestDefinition reads leaderworker.yaml, which has all fields of the type.
func TestDefinition(t *testing.T) {
	w := newWorld(t)
	w.set.Status.Message, w.set.Status.Restarts = "waits", workload.Restarts{"web-0": {Count: 1}}
	operatortest.Definition(t, "leaderworker.yaml", kind(), w.set)
}

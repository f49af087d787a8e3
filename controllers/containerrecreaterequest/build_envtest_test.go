//go:build envtest

package containerrecreaterequest_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/lifecycle"
)

type request = v1beta1.ContainerRecreateRequest

const (
	pending    = v1beta1.ContainerRecreateRequestPending
	recreating = v1beta1.ContainerRecreateRequestRecreating
	succeeded  = v1beta1.ContainerRecreateRequestSucceeded
	completed  = v1beta1.ContainerRecreateRequestCompleted

	finalizer = v1beta1.ContainerRecreateRequestUnreadyAcquiredKey
	activeKey = v1beta1.ContainerRecreateRequestActiveKey
)

// pod makes one with the containers app and log, and waits until it is ready.
func (b *bench) pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName: nodeName, Containers: []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "log", Image: "log:1"}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	if err := b.Client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	if lifecycle.HasGate(pod, kruise.KruisePodReadyConditionType) {
		b.Status(pod, func(pod *corev1.Pod) { setCondition(pod, kruise.KruisePodReadyConditionType, true) })
	}
	b.podReady(pod)
	return pod
}

// gated has a pod's readiness wait for KruisePodReady.
func gated(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
}

// podReady waits for a pod to be ready.
func (b *bench) podReady(pod *corev1.Pod) {
	b.Helper()
	b.Until(func() error {
		if err := b.Look(pod); err != nil {
			return err
		}
		if !isTrue(pod, corev1.PodReady) {
			return fmt.Errorf("pod %s is not ready: %+v", pod.Name, pod.Status.Conditions)
		}
		return nil
	})
}

func isTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	c := lifecycle.ConditionOf(pod, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// ask makes a request about the container app of a pod, as the webhook would let it pass.
func (b *bench) ask(name string, pod *corev1.Pod, change ...func(*request)) *request {
	b.Helper()
	r, faults := containerrestart.Admit(b.asked(name, pod, change...), pod, &corev1.Node{})
	if len(faults) > 0 {
		b.Fatal(faults.ToAggregate())
	}
	if err := b.Client.Create(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	return r
}

// asked is a request as a user writes it.
func (b *bench) asked(name string, pod *corev1.Pod, change ...func(*request)) *request {
	r := &request{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName:    pod.Name,
			Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}},
			Strategy:   &v1beta1.ContainerRecreateRequestStrategy{},
		},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

// grace asks for the pod to be out of traffic for so many seconds before.
func grace(seconds int64) func(*request) {
	return func(r *request) { r.Spec.Strategy.UnreadyGracePeriodSeconds = &seconds }
}

func ttl(seconds int32) func(*request) {
	return func(r *request) { r.Spec.TTLSecondsAfterFinished = &seconds }
}

// phase is written as a daemon would.
func (b *bench) phase(r *request, p v1beta1.ContainerRecreateRequestPhase) {
	b.Helper()
	patch := fmt.Sprintf(`{"status":{"phase":%q}}`, p)
	if err := b.Client.Status().Patch(b.Context(), r, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		b.Fatal(err)
	}
}

// ended is a request that is over, and cleaned up after, with a message.
func ended(message string) func(*request) error {
	return func(r *request) error {
		switch s := r.Status; {
		case s.Phase != completed || s.CompletionTime == nil:
			return errors.New("has not ended")
		case s.Message != message:
			return fmt.Errorf("ended with %q, want %q", s.Message, message)
		case r.Labels[activeKey] != "" || len(r.Finalizers) > 0:
			return fmt.Errorf("is not cleaned up: labels %v, finalizers %v", r.Labels, r.Finalizers)
		}
		return nil
	}
}

// graceCondition is the one that says since when the pod is out of traffic; nil for none.
func graceCondition(r *request) *metav1.Condition {
	return meta.FindStatusCondition(r.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
}

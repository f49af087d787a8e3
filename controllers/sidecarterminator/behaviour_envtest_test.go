//go:build envtest

package sidecarterminator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

// A request is made once the main container has finished, as the reference makes it, and an event tells of it once.
func TestRequest(t *testing.T) {
	b := start(t)
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill})
	b.Still()
	if b.request(pod) != nil || len(b.Asked()) > 0 {
		t.Error("it does not wait for the main container")
	}
	b.end(pod, 1, "app")
	r := b.asks(pod, "s1")
	want := v1beta1.ContainerRecreateRequestSpec{
		PodName: "job", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "s1"}},
		Strategy: &v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true, FailurePolicy: "Ignore"},
	}
	if diff := cmp.Diff(want, r.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	owner := []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: "job", UID: pod.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	if diff := cmp.Diff(owner, r.OwnerReferences); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 3 {
		b.Status(pod, func(pod *corev1.Pod) { pod.Status.Message = fmt.Sprint(i) })
	}
	b.Still()
	if diff := cmp.Diff([]string{"POST containerrecreaterequests 201"}, b.Asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.tells(pod, "The others have finished: stopping sidecars s1 by ContainerRecreateRequest "+r.Name+" (1)")
	if err := b.Look(pod); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the phase is %s: %v", pod.Status.Phase, err)
	}
	b.end(pod, 0, "s1")
	b.Still()
	if all := b.Asked(); len(all) > 0 {
		t.Errorf("all have ended, and it asks %q", all)
	}
}

// tells waits for the events of a pod.
func (b *bench) tells(pod *corev1.Pod, want ...string) {
	b.Helper()
	b.Until(func() error {
		if diff := cmp.Diff(want, b.Events(pod, "SidecarTerminator")); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	})
}

// Sidecars whose exit code does not count come last, after the phase of the pod is written; the request for the others,
// which never ends since none of its containers starts again, is replaced. Package finish has who is stopped when.
func TestIgnored(t *testing.T) {
	b := start(t)
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill}, []string{kill, ignore})
	b.end(pod, 1, "app")
	first := b.asks(pod, "s1")
	b.Still()
	b.Asked()
	b.end(pod, 137, "s1")
	last := b.asks(pod, "s2")
	if first.UID == last.UID {
		t.Error("it is the same request")
	}
	if err := b.Look(pod); err != nil {
		t.Fatal(err)
	}
	condition := lifecycle.ConditionOf(pod, kruise.SidecarTerminated)
	if pod.Status.Phase != corev1.PodFailed || condition == nil || condition.Status != corev1.ConditionTrue ||
		condition.Reason != "" || condition.Message != "Terminated by Sidecar Terminator" {
		t.Errorf("%s, %+v", pod.Status.Phase, condition)
	}
	b.Still()
	path := "containerrecreaterequests/" + last.Name
	want := []string{"PATCH pods/job/status 200", "DELETE " + path + " 200", "POST containerrecreaterequests 201"}
	if diff := cmp.Diff(want, b.Asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// On a virtual node sidecars get another image, once, and there is no request.
func TestVirtual(t *testing.T) {
	b := newBench(t, map[string]string{kruise.NodeTypeKey: kruise.NodeTypeVirtualKubelet})
	b.reconcile(sidecarterminator.Options{}, plain)
	pod := b.pod("job", corev1.RestartPolicyOnFailure, []string{image}, []string{kill}, []string{image, kill, ignore})
	b.end(pod, 0, "app")
	b.Until(func() error {
		if err := b.Look(pod); err != nil {
			return err
		}
		var images []string
		for _, c := range pod.Spec.Containers {
			images = append(images, c.Image)
		}
		if diff := cmp.Diff([]string{"app:1", "exit:1", "sidecar:1", "exit:1"}, images); diff != "" {
			return fmt.Errorf("images (-want +got):\n%s", diff)
		}
		return nil
	})
	for i := range 3 {
		b.Status(pod, func(pod *corev1.Pod) { pod.Status.Message = fmt.Sprint(i) })
	}
	b.Still()
	if diff := cmp.Diff([]string{"PATCH pods/job 200"}, requests.Without(b.Asked(), " 409")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.tells(pod, "The main containers have finished: sidecars s1, s3 get the image that ends them (1)")
	if r := b.request(pod); r != nil {
		t.Errorf("%+v", r.Spec)
	}
}

// The end of a request wakes its pod, and so does its deletion by another client.
func TestWoken(t *testing.T) {
	b := newBench(t, nil)
	o := sidecarterminator.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }} // no pause is left
	b.reconcile(o, plain)
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill})
	b.end(pod, 0, "app")
	other := func(than *request) (r *request) {
		b.Until(func() error {
			if r = b.request(pod); r == nil || r.UID == than.UID {
				return fmt.Errorf("no other request yet")
			}
			return nil
		})
		return r
	}
	gone := b.asks(pod, "s1")
	b.Gone(gone) // while the ledger may still have the creation
	first := other(gone)
	before := first.DeepCopy()
	first.Status.Phase, first.Status.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, ptr.To(metav1.Now())
	if err := b.Client.Status().Patch(t.Context(), first, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	second := other(first)
	b.Gone(second)
	other(second)
}

// Whatever is lost, on the way to the API server or back, every sidecar is asked to stop in its turn.
func TestFaults(t *testing.T) {
	b := newBench(t, nil)
	f := b.Faults(0)
	b.reconcile(sidecarterminator.Options{}, func(c client.WithWatch) client.Client { return podbench.Writes(c, f.Do) })
	var pods []*corev1.Pod
	for i := range 15 {
		pods = append(pods,
			b.pod(fmt.Sprintf("job-%d", i), corev1.RestartPolicyNever, []string{kill}, []string{kill, ignore}))
	}
	for _, pod := range pods {
		b.end(pod, 0, "app")
	}
	for _, pod := range pods {
		b.asks(pod, "s1")
		b.end(pod, 0, "s1")
	}
	for _, pod := range pods {
		b.asks(pod, "s2")
		if err := b.Look(pod); err != nil || pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("%s is %s: %v", pod.Name, pod.Status.Phase, err)
		}
	}
}

//go:build envtest

package sidecarterminator_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator"
)

// A request that ended and has stopped nothing is made again after a pause.
func TestAgain(t *testing.T) {
	b := newBench(t, nil)
	stop := b.reconcile(sidecarterminator.Options{}, plain)
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill})
	b.end(pod, 0, "app")
	first := b.asks(pod, "s1")
	before := first.DeepCopy()
	now := metav1.Now()
	first.Status.Phase, first.Status.CompletionTime, first.Status.Message = v1beta1.ContainerRecreateRequestCompleted,
		&now, "daemon has not responded for a long time"
	if err := b.Client.Status().Patch(t.Context(), first, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	b.Still()
	if r := b.request(pod); r.UID != first.UID {
		t.Error("there is no pause")
	}
	stop()
	b.reconcile(ahead(time.Hour), plain)
	b.Until(func() error {
		if r := b.request(pod); r == nil || r.UID == first.UID {
			return fmt.Errorf("no other request yet")
		}
		return nil
	})
}

// The end of a request wakes its pod, and so does its deletion by another client.
func TestWoken(t *testing.T) {
	b := newBench(t, nil)
	b.reconcile(ahead(time.Hour), plain)
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

// A node that is not there is waited for.
func TestNoNode(t *testing.T) {
	b := newBench(t, nil)
	b.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.Namespace}})
	stop := b.reconcile(sidecarterminator.Options{}, plain)
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill})
	b.end(pod, 0, "app")
	b.Still()
	if all := b.Asked(); len(all) > 0 {
		t.Errorf("asked %q", all)
	}
	stop()
	if err := b.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.Namespace}}); err != nil {
		t.Fatal(err)
	}
	b.reconcile(sidecarterminator.Options{}, plain)
	b.asks(pod, "s1")
}

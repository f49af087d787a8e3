//go:build envtest

package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// A fresh install creates definitions and the manager in one go. All reconcilers index pods by owner, and several at the same time.
func TestKindsInstalledAfterTheStart(t *testing.T) {
	mo, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: mo.Scheme})
	mo.Metrics = metricsserver.Options{BindAddress: "0"}
	mgr, err := ctrl.NewManager(c.Config, mo)
	if err != nil {
		t.Fatal(err)
	}
	if err := AddToManager(t.Context(), mgr, Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-mgr.Elected()
	if err := c.InstallCRDs(t.Context(), "../config/crd/bases"); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1beta1.CloneSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		},
	}}
	sidecars := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "proxies"}, Spec: v1beta1.SidecarSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: labels},
		Containers: []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Image: "proxy"}}},
	}}
	for _, object := range []client.Object{set, sidecars} {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	var last error
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = errors.Join(
			c.Client.Get(ctx, client.ObjectKeyFromObject(set), set), c.Client.Get(ctx, client.ObjectKeyFromObject(sidecars), sidecars),
		)
		if set.Status.Replicas != 1 || sidecars.Status.MatchedPods != 1 {
			last = errors.Join(last, fmt.Errorf("the CloneSet has %d pods, the SidecarSet selects %d", set.Status.Replicas, sidecars.Status.MatchedPods))
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(errors.Join(err, last))
	}
}

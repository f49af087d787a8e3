//go:build envtest

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// A fresh install creates definitions and the manager in one go. All reconcilers index pods by owner, and several at
// the same time.
func TestKindsInstalledAfterTheStart(t *testing.T) {
	mo, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: mo.Scheme})
	mo.Metrics = metricsserver.Options{BindAddress: "0"}
	said := &strings.Builder{}
	var mu sync.Mutex
	mo.Logger = funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(said, line)
	}, funcr.Options{})
	mgr, err := ctrl.NewManager(c.Config, mo)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Registerer: prometheus.NewRegistry(), LeftOut: &LeftOut{}}
	if err := AddToManager(t.Context(), mgr, o); err != nil {
		t.Fatal(err)
	}
	if err := o.LeftOut.Check(nil); err == nil || !slices.Contains(o.LeftOut.Names(), "cloneset") {
		t.Errorf("left out: %v, readiness %v", o.LeftOut.Names(), err)
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
	history := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}}
	for _, object := range []client.Object{history, set, sidecars} {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	var last error
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = errors.Join(
				c.Client.Get(ctx, client.ObjectKeyFromObject(set), set),
				c.Client.Get(ctx, client.ObjectKeyFromObject(sidecars), sidecars),
			)
			if set.Status.Replicas != 1 || sidecars.Status.ObservedGeneration != 1 {
				last = errors.Join(last, fmt.Errorf("statuses %+v, %+v", set.Status, sidecars.Status))
			}
			last = errors.Join(last, o.LeftOut.Check(nil), checkMetrics(o.Registerer.(*prometheus.Registry)))
			return last == nil, nil
		})
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("%v\nlog: %s", errors.Join(err, last), said)
	}
	if names := o.LeftOut.Names(); len(names) > 0 {
		t.Errorf("%v are left out", names)
	}
}

// checkMetrics returns an error unless no reconciler is left out, and the objects of all followed kinds are observed.
func checkMetrics(registry *prometheus.Registry) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	series := map[string]int{}
	for _, family := range families {
		series[family.GetName()] = len(family.GetMetric())
		for _, m := range family.GetMetric() {
			if m.GetGauge().GetValue() != 0 {
				return fmt.Errorf("%s: %v", family.GetName(), m)
			}
		}
	}
	want := map[string]int{
		"kruisekit_controllers_left_out":                 len(Names()) - 1, // native must be named
		"kruisekit_oldest_unobserved_generation_seconds": 5,
	}
	if !maps.Equal(series, want) {
		return fmt.Errorf("series %v, want %v", series, want)
	}
	return nil
}

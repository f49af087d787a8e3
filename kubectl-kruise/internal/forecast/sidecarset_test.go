package forecast_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/sidecar"
)

// mesh is a SidecarSet with two containers, and its hashes.
func mesh(t *testing.T, changes ...func(*v1beta1.SidecarSet)) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", UID: "mesh"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"mesh": "yes"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{
		{Container: corev1.Container{Name: "proxy", Image: "proxy:1"}},
		{Container: corev1.Container{Name: "agent", Image: "agent:1"}},
	}
	for _, change := range changes {
		change(set)
	}
	set.Default()
	hash, err := sidecar.Hash(set)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := sidecar.HashWithoutImage(set)
	if err != nil {
		t.Fatal(err)
	}
	set.Annotations = map[string]string{kruise.SidecarSetHashKey: hash, kruise.SidecarSetHashWithoutImageKey: bare}
	return set
}

// inject adds pods of two namespaces to which a set was injected.
func inject(t *testing.T, m *model, set *v1beta1.SidecarSet) {
	t.Helper()
	parsed, err := sidecar.Parse(set)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: []string{"pay", "shop"}[i%2], Name: fmt.Sprint("web-", i), Labels: map[string]string{"mesh": "yes"},
		}}
		if i == 3 {
			pod.Labels["canary"] = "yes"
		}
		pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		injection, err := sidecar.Inject(pod, []*sidecar.Set{parsed}, sidecar.Options{Now: m.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Server.Create(t.Context(), injection.Pod); err != nil {
			t.Fatal(err)
		}
	}
	m.RunPods()
	m.Advance(time.Second)
	m.RunPods()
	m.Advance(time.Hour)
}

func TestSidecarSet(t *testing.T) {
	upgrade := func(set *v1beta1.SidecarSet) { set.Spec.Containers[0].Image = "proxy:2" }
	for name, c := range map[string]struct{ set, change func(*v1beta1.SidecarSet) }{
		"image": {func(*v1beta1.SidecarSet) {}, upgrade},
		"partition": {func(set *v1beta1.SidecarSet) {
			set.Spec.UpdateStrategy.MaxUnavailable = amount("2")
		}, func(set *v1beta1.SidecarSet) {
			upgrade(set)
			set.Spec.UpdateStrategy.Partition = amount("50%")
		}},
		"selector": {func(*v1beta1.SidecarSet) {}, func(set *v1beta1.SidecarSet) {
			upgrade(set)
			set.Spec.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
		}},
		"new pods alone": {func(*v1beta1.SidecarSet) {}, func(set *v1beta1.SidecarSet) {
			upgrade(set)
			set.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
		}},
		"a variable": {func(*v1beta1.SidecarSet) {}, func(set *v1beta1.SidecarSet) {
			set.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := mesh(t, c.set)
			m := newModel(t, set)
			m.Put(set)
			inject(t, m, set)
			compareText(t, "sidecarset "+name, forecastOf(t, m, set, forecast.Options{}, c.change))
		})
	}
}

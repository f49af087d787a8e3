package native_test

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// A new leader may see a set as it was before the last rollout. It reads the set past the cache once before it changes
// a pod, and does not take the rollout back.
func TestNewLeaderWithOlderSet(t *testing.T) {
	t.Run("StatefulSet", func(t *testing.T) {
		m := newModel(t, native.Options{})
		m.Still()
		earlier := m.Server.Snapshot()
		m.change(image("2"))
		m.Still()
		leads(t, m.Model, "StatefulSet", func() *apiserver.Lagging {
			cache := m.Behind(earlier)
			m.restart(cache)
			return cache
		})
	})
	t.Run("Deployment", func(t *testing.T) {
		m := newDeployed(t)
		m.change(func(d *appsv1.Deployment) { d.Spec.Paused = true }) // by its user
		m.Still()
		earlier := m.Server.Snapshot()
		m.change(tag("2"))
		m.Still()
		leads(t, m.Model, "Deployment", func() *apiserver.Lagging {
			cache := m.Behind(earlier)
			m.restart(cache)
			return cache
		})
	})
}

// leads has another replica lead, whose cache catches up after some passes.
func leads(t *testing.T, m *objects.Model, kind string, another func() *apiserver.Lagging) {
	t.Helper()
	versions := func() (all []string) {
		for _, pod := range m.Pods() {
			all = append(all, pod.Name+" "+pod.ResourceVersion)
		}
		return all
	}
	before := versions()
	m.Live.Reads()
	cache := another()
	for range 5 {
		m.Reconcile()
		m.RunPods()
	}
	cache.Thaw()
	m.Still()
	if after := versions(); !slices.Equal(before, after) {
		t.Errorf("pods %v, want %v", after, before)
	}
	if reads := m.Live.Reads(); !slices.Equal(reads, []string{"get " + kind + " metadata"}) {
		t.Errorf("reads past the cache: %v, want one", reads)
	}
}

// TestLeanReplicaSets: the cache of controllers.ManagerOptions drops the templates of ReplicaSets without pods. Each is
// read once.
func TestLeanReplicaSets(t *testing.T) {
	m := newDeployed(t)
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{
		List: func(ctx context.Context, in client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
			err := in.List(ctx, into, o...)
			if list, ok := into.(*appsv1.ReplicaSetList); ok {
				for i := range list.Items {
					if set := &list.Items[i]; *set.Spec.Replicas == 0 && set.Status.Replicas == 0 {
						set.Spec.Template = corev1.PodTemplateSpec{}
					}
				}
			}
			return err
		},
	}))
	before := uids(m.Pods())
	m.Live.Reads()
	for _, to := range []string{"2", "1", "2", "3"} {
		m.change(tag(to))
		m.Still()
	}
	want := []string{"3 0 of web:1", "4 0 of web:2", "5 3 of web:3"}
	if got := m.sets(); !slices.Equal(got, want) || !slices.Equal(before, uids(m.Pods())) {
		t.Errorf("ReplicaSets %v, want %v; the pods are the same: %t", got, want, slices.Equal(before, uids(m.Pods())))
	}
	reads := slices.DeleteFunc(m.Live.Reads(), func(read string) bool { return read != "get ReplicaSet" })
	if len(reads) == 0 || len(reads) > 4 {
		t.Errorf("%d reads of ReplicaSets for four templates", len(reads))
	}
}

// TestNewNamespaceLabel: the namespace of a held Deployment asks for rollouts, and the cache does not show the label.
func TestNewNamespaceLabel(t *testing.T) {
	m := newDeployed(t)
	m.change(func(d *appsv1.Deployment) { delete(d.Annotations, adapter.RolloutKey) })
	m.Still()
	objects.Change(m.Model, m.namespace, func(n *corev1.Namespace) {
		n.Labels = map[string]string{adapter.RolloutKey: adapter.Enabled}
	})
	before := uids(m.Pods())
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{
		Get: func(
			ctx context.Context, in client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption,
		) error {
			err := in.Get(ctx, key, into, o...)
			if into.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
				into.SetLabels(nil)
			}
			return err
		},
	}))
	m.change(tag("2"))
	m.Still()
	want := []string{"1 0 of web:1", "2 3 of web:2"}
	if got := m.sets(); !slices.Equal(got, want) || !slices.Equal(before, uids(m.Pods())) {
		t.Errorf("ReplicaSets %v, want %v; the pods are the same: %t", got, want, slices.Equal(before, uids(m.Pods())))
	}
}

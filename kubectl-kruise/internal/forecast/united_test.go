package forecast_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
)

// zones is a UnitedDeployment of six pods with a CloneSet in each of three zones.
func zones(changes ...func(*v1beta1.UnitedDeployment)) *v1beta1.UnitedDeployment {
	u := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "united"}}
	u.Spec.Replicas = ptrTo(int32(6))
	labels := map[string]string{"app": "web"}
	u.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	t := &v1beta1.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	t.Spec = web(0).Spec
	t.Spec.Selector = nil
	t.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount("1")
	u.Spec.Template.CloneSetTemplate = t
	for _, zone := range []string{"a", "b", "c"} {
		u.Spec.Topology.Subsets = append(u.Spec.Topology.Subsets, v1beta1.Subset{
			Name: zone, NodeSelectorTerm: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
			}},
		})
	}
	for _, change := range changes {
		change(u)
	}
	u.Default()
	return u
}

// newUnited runs the reconcilers of UnitedDeployments and CloneSets one after the other.
func newUnited(t *testing.T, m *model) {
	t.Helper()
	if err := uniteddeployment.IndexPods(t.Context(), m.Server); err != nil {
		t.Fatal(err)
	}
	owner, err := uniteddeployment.New(m.Server, uniteddeployment.Options{Now: m.Now, Recorder: m.Server, Live: m.Server})
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	sets, err := cloneset.New(m.Server, cloneset.Options{
		Now: m.Now, Recorder: m.Server, Live: m.Server,
		NewID: func() string { ids++; return string(rune('a' - 1 + ids)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := owner.Reconcile(ctx, request)
		var list v1beta1.CloneSetList
		if failed := m.Server.List(ctx, &list); failed != nil {
			t.Fatal(failed)
		}
		for i := range list.Items {
			child, failed := sets.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			if failed != nil {
				t.Error(failed)
			}
			result.RequeueAfter = max(result.RequeueAfter, child.RequeueAfter)
		}
		return result, err
	})
}

func TestUnitedDeployment(t *testing.T) {
	template := func(u *v1beta1.UnitedDeployment) *corev1.PodSpec {
		return &u.Spec.Template.CloneSetTemplate.Spec.Template.Spec
	}
	for name, change := range map[string]func(*v1beta1.UnitedDeployment){
		"image": func(u *v1beta1.UnitedDeployment) { template(u).Containers[0].Image = "web:2" },
		"scale out": func(u *v1beta1.UnitedDeployment) {
			*u.Spec.Replicas = 10
			share := intstr.FromInt32(4)
			u.Spec.Topology.Subsets[0].Replicas = &share
		},
		"a zone less": func(u *v1beta1.UnitedDeployment) { u.Spec.Topology.Subsets = u.Spec.Topology.Subsets[:2] },
		"partitions": func(u *v1beta1.UnitedDeployment) {
			template(u).Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
			u.Spec.UpdateStrategy.ManualUpdate = &v1beta1.ManualUpdate{Partitions: map[string]int32{"a": 2, "b": 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := zones()
			m := newModel(t, set)
			newUnited(t, m)
			m.Put(set)
			m.Still()
			m.Advance(3600e9)
			var more []client.Object
			for _, list := range []client.ObjectList{&v1beta1.CloneSetList{}, &appsv1.DeploymentList{}} {
				more = append(more, m.list(t, list)...)
			}
			f := forecastOf(t, m, set, forecast.Options{}, change, more...)
			for i := range f.Pods { // of generated names
				f.Pods[i].Name = strings.TrimPrefix(f.Pods[i].Name, "web-")
			}
			compareText(t, "uniteddeployment "+name, f)
		})
	}
}

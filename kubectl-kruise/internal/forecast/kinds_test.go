package forecast_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
)

func database(replicas int32, changes ...func(*v1beta1.StatefulSet)) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}}
	set.Spec.Replicas = &replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	set.Spec.Template.Labels = map[string]string{"app": "db"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}, {Name: "log", Image: "log:1"}}
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	set.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{
		Type: appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
			PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType,
		},
	}
	for _, change := range changes {
		change(set)
	}
	set.Default()
	return set
}

func TestStatefulSet(t *testing.T) {
	upgrade := func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" }
	for name, c := range map[string]struct {
		set    *v1beta1.StatefulSet
		change func(*v1beta1.StatefulSet)
	}{
		"in place": {database(3), upgrade},
		"partition": {database(3), func(set *v1beta1.StatefulSet) {
			upgrade(set)
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptrTo(int32(2))
		}},
		"a variable": {database(3), func(set *v1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
		}},
		"parallel": {database(12, func(set *v1beta1.StatefulSet) {
			set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}), func(set *v1beta1.StatefulSet) {
			upgrade(set)
			*set.Spec.Replicas = 11
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount("50%")
		}},
		"on delete": {database(2), func(set *v1beta1.StatefulSet) {
			upgrade(set)
			set.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := forecastOf(t, atRest(t, c.set), c.set, forecast.Options{}, c.change)
			compareText(t, "statefulset "+name, f)
		})
	}
}

func ptrTo[T any](v T) *T { return &v }

func agent(changes ...func(*v1beta1.DaemonSet)) *v1beta1.DaemonSet {
	set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	set.Spec.Template.Labels = map[string]string{"app": "agent"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}, {Name: "log", Image: "log:1"}}
	set.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{
		Type:          v1beta1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &v1beta1.RollingUpdateDaemonSet{Type: v1beta1.InplaceRollingUpdateType},
	}
	for _, change := range changes {
		change(set)
	}
	set.Default()
	return set
}

func TestDaemonSet(t *testing.T) {
	upgrade := func(set *v1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" }
	for name, c := range map[string]struct {
		set    *v1beta1.DaemonSet
		change func(*v1beta1.DaemonSet)
	}{
		"in place": {agent(), upgrade},
		"selector": {agent(), func(set *v1beta1.DaemonSet) {
			upgrade(set)
			set.Spec.UpdateStrategy.RollingUpdate.Selector = &metav1.LabelSelector{
				MatchLabels: map[string]string{"canary": "yes"},
			}
		}},
		"partition": {agent(), func(set *v1beta1.DaemonSet) {
			upgrade(set)
			set.Spec.UpdateStrategy.RollingUpdate.Partition = amount("1")
		}},
		"surge": {agent(func(set *v1beta1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Type = v1beta1.StandardRollingUpdateType
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = amount("2")
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount("0")
		}), upgrade},
		"other nodes": {agent(), func(set *v1beta1.DaemonSet) {
			set.Spec.Template.Spec.NodeSelector = map[string]string{"canary": "yes"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := forecastOf(t, atRest(t, c.set), c.set, forecast.Options{}, c.change)
			compareText(t, "daemonset "+name, f)
		})
	}
}

// A kind without pods that it updates is refused.
func TestUnsupported(t *testing.T) {
	job := &v1beta1.BroadcastJob{}
	_, err := forecast.Of(t.Context(), forecast.Input{Live: job, Wanted: job})
	var unsupported *forecast.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Error(err)
	}
}

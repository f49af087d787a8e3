package validation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/validation"
)

func newDaemonSet(changes ...func(*appsv1beta1.DaemonSet)) *appsv1beta1.DaemonSet {
	set := &appsv1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	set.Spec.Template.Labels = map[string]string{"app": "agent"}
	for _, change := range changes {
		change(set)
	}
	return set
}

func TestDaemonSet(t *testing.T) {
	amount := func(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }
	rolling := func(change func(*appsv1beta1.RollingUpdateDaemonSet)) func(*appsv1beta1.DaemonSet) {
		return func(s *appsv1beta1.DaemonSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateDaemonSet{}
			change(s.Spec.UpdateStrategy.RollingUpdate)
		}
	}
	budgets := func(unavailable, surge *intstr.IntOrString) func(*appsv1beta1.DaemonSet) {
		return rolling(func(u *appsv1beta1.RollingUpdateDaemonSet) { u.MaxUnavailable, u.MaxSurge = unavailable, surge })
	}
	const at = "spec.updateStrategy.rollingUpdate."
	for why, c := range map[string]struct {
		change func(*appsv1beta1.DaemonSet)
		want   []string
	}{
		"a template alone is enough": {func(*appsv1beta1.DaemonSet) {}, nil},
		"a selector is required":     {func(s *appsv1beta1.DaemonSet) { s.Spec.Selector = nil }, []string{"spec.selector"}},
		"pods run for ever": {
			func(s *appsv1beta1.DaemonSet) { s.Spec.Template.Spec.RestartPolicy = "Never" },
			[]string{"spec.template.spec.restartPolicy"},
		},
		"times are not negative": {
			func(s *appsv1beta1.DaemonSet) { s.Spec.MinReadySeconds = -1 }, []string{"spec.minReadySeconds"},
		},
		"a limit is not negative": {
			func(s *appsv1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = ptr.To[int32](-1) },
			[]string{"spec.revisionHistoryLimit"},
		},
		"no hook around updates in place": {func(s *appsv1beta1.DaemonSet) {
			s.Spec.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{}}
		}, []string{"spec.lifecycle.inPlaceUpdate"}},
		"a burst of nothing": {
			func(s *appsv1beta1.DaemonSet) { s.Spec.BurstReplicas = amount("0%") }, []string{"spec.burstReplicas"},
		},
		"a negative burst": {
			func(s *appsv1beta1.DaemonSet) { s.Spec.BurstReplicas = amount("-1") }, []string{"spec.burstReplicas"},
		},
		"an unknown strategy": {
			func(s *appsv1beta1.DaemonSet) { s.Spec.UpdateStrategy.Type = "Never" }, []string{"spec.updateStrategy.type"},
		},
		"OnDelete takes the block as is": {
			func(s *appsv1beta1.DaemonSet) { budgets(amount("x"), nil)(s); s.Spec.UpdateStrategy.Type = "OnDelete" }, nil,
		},
		"Surging is of v1alpha1": {
			rolling(func(u *appsv1beta1.RollingUpdateDaemonSet) { u.Type = "Surging" }), []string{at + "rollingUpdateType"},
		},
		"one bound is enough":           {budgets(nil, amount("50%")), nil},
		"both bounds":                   {budgets(amount("1"), amount("1")), []string{at + "maxSurge"}},
		"neither bound":                 {budgets(amount("0"), amount("0%")), []string{at + "maxUnavailable"}},
		"a bound beyond all nodes":      {budgets(amount("150%"), nil), []string{at + "maxUnavailable"}},
		"nonsense beside a valid bound": {budgets(amount("x"), amount("1")), []string{at + "maxUnavailable"}},
		"a surge in place": {rolling(func(u *appsv1beta1.RollingUpdateDaemonSet) {
			u.Type, u.MaxSurge = appsv1beta1.InplaceRollingUpdateType, amount("1")
		}), []string{at + "maxSurge"}},
		"a negative partition": {
			rolling(func(u *appsv1beta1.RollingUpdateDaemonSet) { u.Partition = amount("-1") }), []string{at + "partition"},
		},
		"a selector of nodes": {rolling(func(u *appsv1beta1.RollingUpdateDaemonSet) {
			u.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}), []string{at + "selector.matchExpressions[0].operator"}},
	} {
		t.Run(why, func(t *testing.T) {
			for _, defaulted := range []bool{false, true} {
				set := newDaemonSet(c.change)
				if defaulted {
					set.Default()
				}
				var got []string
				for _, fault := range validation.DaemonSet(set) {
					got = append(got, fault.Field)
				}
				if diff := cmp.Diff(c.want, slices.Compact(got)); diff != "" {
					t.Errorf("with defaults %t (-want +got):\n%s", defaulted, diff)
				}
			}
		})
	}
}

func TestDaemonSetUpdate(t *testing.T) {
	all := newDaemonSet(func(s *appsv1beta1.DaemonSet) {
		s.Spec.MinReadySeconds, s.Spec.BurstReplicas, s.Spec.RevisionHistoryLimit = 1, ptr.To(intstr.FromInt32(1)),
			ptr.To[int32](1)
		s.Spec.UpdateStrategy.Type, s.Spec.Lifecycle, s.Spec.ScaleStrategy = "OnDelete", &kruise.Lifecycle{},
			&appsv1beta1.DaemonSetScaleStrategy{}
		s.Spec.Template.Spec.HostNetwork = true
	})
	if faults := validation.DaemonSetUpdate(all, newDaemonSet()); len(faults) > 0 {
		t.Errorf("all but the selector can change: %v", faults)
	}
	other := newDaemonSet(func(s *appsv1beta1.DaemonSet) { s.Spec.Selector.MatchLabels["app"] = "other" })
	if faults := validation.DaemonSetUpdate(other, newDaemonSet()); len(faults) != 1 || faults[0].Field != "spec" {
		t.Errorf("the selector cannot change: %v", faults)
	}
}

func ExampleDaemonSet() {
	set := newDaemonSet(func(s *appsv1beta1.DaemonSet) { s.Spec.BurstReplicas = ptr.To(intstr.FromInt32(-5)) })
	printFaults(validation.DaemonSet(set))
	// Output: spec.burstReplicas: Invalid value: "-5": must not be negative
}

func ExampleDaemonSetUpdate() {
	set := newDaemonSet()
	set.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
	printFaults(validation.DaemonSetUpdate(set, newDaemonSet())[:1])
	// Output: spec: Forbidden: only template, updateStrategy, lifecycle, burstReplicas, minReadySeconds, revisionHistoryLimit and scaleStrategy can be changed
}

func printFaults(faults field.ErrorList) {
	for _, fault := range faults {
		fmt.Println(fault) //nolint:forbidigo // the output of examples
	}
}

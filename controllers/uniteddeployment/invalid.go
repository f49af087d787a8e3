package uniteddeployment

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/subsets"
	"github.com/kruisekit/kruisekit/spread"
	"github.com/kruisekit/kruisekit/validation"
)

// check reads the spec into the snapshot, and returns why nothing can be done with it. Other faults have a safe reading.
func (r *Reconciler) check(s *snapshot) error {
	if fault := validation.UnusableUnitedDeployment(s.object); fault != nil {
		return failure.Brief(fault)
	}
	selector, err := metav1.LabelSelectorAsSelector(s.object.Spec.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	s.selector = selector.String()
	if s.template, err = subsets.Parse(&s.object.Spec.Template); err != nil {
		return err
	}
	if r.children[s.template.Kind] == nil {
		return fmt.Errorf("spec.template: the kind %s of %s is not installed", s.template.Kind.Kind, s.template.Kind.GroupVersion())
	}
	s.schedulesAs(&s.object.Spec.Topology.ScheduleStrategy)
	return nil
}

// schedulesAs reads the schedule strategy. Reservation with a StatefulSet counts as Adaptive without.
func (s *snapshot) schedulesAs(strategy *v1beta1.UnitedDeploymentScheduleStrategy) {
	if strategy.Type != v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType {
		return
	}
	adaptive := ptr.Deref(strategy.Adaptive, v1beta1.AdaptiveUnitedDeploymentStrategy{})
	s.mode = spread.Adaptive
	if adaptive.ReserveUnschedulablePods && s.template.Reserves() {
		s.mode = spread.Reserving
	}
	seconds := func(n *int32, otherwise, least int32) time.Duration {
		return time.Duration(max(ptr.Deref(n, otherwise), least)) * time.Second
	}
	s.windows = spread.Windows{
		Critical:      seconds(adaptive.RescheduleCriticalSeconds, v1beta1.DefaultRescheduleCriticalSeconds, 0),
		Unschedulable: seconds(adaptive.UnschedulableDuration, v1beta1.DefaultUnschedulableDurationSeconds, 1),
	}
}

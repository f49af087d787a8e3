package rollout

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/workload/native"
)

// The names of the three, and of what labels their pods.
const (
	cloneSetName   = "web"
	deploymentName = "plain"
	inPlaceName    = "held"
	label          = "app"
)

// actor is one of the three workloads in a step.
type actor struct {
	client client.Client
	// object is a CloneSet or a Deployment.
	object     client.Object
	generation int64
	turn       int
	idle       bool
	before     memory
	took       time.Duration
	// last counts its pods at the last look, and was is how many were updated before the step.
	last observed
	was  int
}

// actors returns the three, as the story begins.
func actors(c client.Client, replicas int32) []*actor {
	unavailable := intstr.FromString("20%")
	meta := func(name string) (metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) {
		t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: name}}}
		t.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
		t.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
		return metav1.ObjectMeta{Namespace: Namespace, Name: name}, &metav1.LabelSelector{MatchLabels: t.Labels}, t
	}
	set := &v1beta1.CloneSet{}
	set.ObjectMeta, set.Spec.Selector, set.Spec.Template = meta(cloneSetName)
	set.Spec.Replicas = &replicas
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType, MaxUnavailable: &unavailable,
	}
	all := []*actor{{client: c, object: set}}
	for _, name := range []string{inPlaceName, deploymentName} {
		d := &appsv1.Deployment{}
		d.ObjectMeta, d.Spec.Selector, d.Spec.Template = meta(name)
		if name == inPlaceName {
			d.Annotations = map[string]string{native.RolloutKey: native.Enabled}
		}
		d.Spec.Replicas = &replicas
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: ptr.To(intstr.FromInt32(0))},
		}
		all = append(all, &actor{client: c, object: d})
	}
	return all
}

func (a *actor) name() string { return a.object.GetName() }

func (a *actor) title() string {
	switch a.name() {
	case cloneSetName:
		return "CloneSet"
	case inPlaceName:
		return "annotated Deployment"
	}
	return "Deployment"
}

func (a *actor) template() *corev1.PodTemplateSpec {
	switch o := a.object.(type) {
	case *v1beta1.CloneSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	}
	return nil
}

func (a *actor) read(ctx context.Context) error {
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(a.object), a.object); err != nil {
		return fmt.Errorf("get %s: %w", a.title(), err)
	}
	return nil
}

// change makes a step. A Deployment has no partition: for it, a step that changes no template is idle.
func (a *actor) change(ctx context.Context, s step) error {
	if err := a.read(ctx); err != nil {
		return err
	}
	switch o := a.object.(type) {
	case *v1beta1.CloneSet:
		before := o.DeepCopy()
		s.edit(&o.Spec.Template)
		o.Spec.UpdateStrategy.RollingUpdate.Partition = s.partition
		return a.patch(ctx, before)
	case *appsv1.Deployment:
		before := o.DeepCopy()
		s.edit(&o.Spec.Template)
		if a.idle = describe(&before.Spec.Template.Spec) == describe(&o.Spec.Template.Spec); a.idle {
			return nil
		}
		// The rule of the webhook, which the demo does not serve.
		if o.Name == inPlaceName && native.Hold(before, o) != nil {
			o.Spec.Paused = true
			o.Annotations[native.HoldKey] = strconv.FormatInt(before.Generation, 10)
		}
		return a.patch(ctx, before)
	}
	return nil
}

func (a *actor) patch(ctx context.Context, before client.Object) error {
	if err := a.client.Patch(ctx, a.object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change %s: %w", a.title(), err)
	}
	a.turn, a.generation = a.turn+1, a.object.GetGeneration()
	return nil
}

// done reports whether the status of the workload says that the change is complete.
func (a *actor) done(ctx context.Context) (bool, error) {
	if err := a.read(ctx); err != nil {
		return false, err
	}
	switch o := a.object.(type) {
	case *v1beta1.CloneSet:
		st, want := o.Status, *o.Spec.Replicas
		updated := st.ExpectedUpdatedReplicas
		return st.ObservedGeneration >= a.generation && st.Replicas == want && st.AvailableReplicas == want &&
			st.UpdatedReplicas >= updated && st.UpdatedAvailableReplicas >= updated, nil
	case *appsv1.Deployment:
		st, want := o.Status, *o.Spec.Replicas
		return st.ObservedGeneration >= a.generation && st.Replicas == want && st.UpdatedReplicas == want &&
			st.AvailableReplicas == want && !o.Spec.Paused, nil
	}
	return false, nil
}

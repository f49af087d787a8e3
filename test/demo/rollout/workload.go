package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	controller "github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/test/demo/screen"
	"github.com/kruisekit/kruisekit/workload/native"
)

// The names of the three, and of what labels their pods.
const (
	cloneSetName   = "web"
	deploymentName = "plain"
	inPlaceName    = "held"
	label          = "app"
)

// unavailable is how many pods of each may be unavailable during a rollout. Neither makes surplus pods.
func unavailable() *intstr.IntOrString { return ptr.To(intstr.FromString("20%")) }

// workload is one of the three, as the story needs it.
type workload interface {
	name() string
	title() string
	// make creates it.
	make(ctx context.Context, c client.Client, replicas int32) error
	// change makes a step with it. It says which generation has it, and whether there was anything to do.
	change(ctx context.Context, c client.Client, s step) (generation int64, changed bool, err error)
	// look says whether a generation has come to its end, by the workload's status, and what the workload says of it.
	look(ctx context.Context, c client.Client, generation int64) (done bool, says []screen.Note, err error)
}

// template of all, as the story begins.
func template(name string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: name}}}
	t.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	t.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	return t
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: Namespace, Name: name}
}

type cloneSet struct{ notes *Notes }

func (cloneSet) name() string  { return cloneSetName }
func (cloneSet) title() string { return "CloneSet " + cloneSetName }

func (cloneSet) make(ctx context.Context, c client.Client, replicas int32) error {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: cloneSetName}}
	set.Spec.Replicas = &replicas
	set.Spec.Template = template(cloneSetName)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Spec.Template.Labels}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType, MaxUnavailable: unavailable(),
	}
	if err := c.Create(ctx, set); err != nil {
		return fmt.Errorf("create CloneSet: %w", err)
	}
	return nil
}

func (cloneSet) change(ctx context.Context, c client.Client, s step) (int64, bool, error) {
	set := &v1beta1.CloneSet{}
	if err := c.Get(ctx, key(cloneSetName), set); err != nil {
		return 0, false, fmt.Errorf("get CloneSet: %w", err)
	}
	before := set.DeepCopy()
	s.edit(&set.Spec.Template)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = s.partition
	if err := c.Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return 0, false, fmt.Errorf("change CloneSet: %w", err)
	}
	return set.Generation, true, nil
}

func (w cloneSet) look(ctx context.Context, c client.Client, generation int64) (bool, []screen.Note, error) {
	set := &v1beta1.CloneSet{}
	if err := c.Get(ctx, key(cloneSetName), set); err != nil {
		return false, nil, fmt.Errorf("get CloneSet: %w", err)
	}
	st, want := set.Status, *set.Spec.Replicas
	updated := st.ExpectedUpdatedReplicas
	done := st.ObservedGeneration >= generation && st.Replicas == want && st.AvailableReplicas == want &&
		st.UpdatedReplicas >= updated && st.UpdatedAvailableReplicas >= updated
	return done, w.notes.at(done), nil
}

// deployment is a Deployment. One that is held asks for rollouts in place.
type deployment struct{ held bool }

func (w deployment) name() string {
	if w.held {
		return inPlaceName
	}
	return deploymentName
}

func (w deployment) title() string { return "Deployment " + w.name() }

func (w deployment) make(ctx context.Context, c client.Client, replicas int32) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: w.name()}}
	if w.held {
		d.Annotations = map[string]string{native.RolloutKey: native.Enabled}
	}
	d.Spec.Replicas = &replicas
	d.Spec.Template = template(w.name())
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: unavailable(), MaxSurge: ptr.To(intstr.FromInt32(0))},
	}
	if err := c.Create(ctx, d); err != nil {
		return fmt.Errorf("create Deployment: %w", err)
	}
	return nil
}

// change gives the template alone: a Deployment has no partition. The write holds the Deployment that asks for it, by
// the rule of the webhook: the demo serves none.
func (w deployment) change(ctx context.Context, c client.Client, s step) (int64, bool, error) {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key(w.name()), d); err != nil {
		return 0, false, fmt.Errorf("get Deployment: %w", err)
	}
	before := d.DeepCopy()
	if s.edit(&d.Spec.Template); describe(&before.Spec.Template.Spec) == describe(&d.Spec.Template.Spec) {
		return d.Generation, false, nil
	}
	if w.held && native.Hold(before, d) != nil {
		d.Spec.Paused = true
		d.Annotations[native.HoldKey] = strconv.FormatInt(before.Generation, 10)
	}
	if err := c.Patch(ctx, d, client.MergeFrom(before)); err != nil {
		return 0, false, fmt.Errorf("change Deployment: %w", err)
	}
	return d.Generation, true, nil
}

func (w deployment) look(ctx context.Context, c client.Client, generation int64) (bool, []screen.Note, error) {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key(w.name()), d); err != nil {
		return false, nil, fmt.Errorf("get Deployment: %w", err)
	}
	st, want := d.Status, *d.Spec.Replicas
	done := st.ObservedGeneration >= generation && st.Replicas == want && st.UpdatedReplicas == want &&
		st.AvailableReplicas == want && !d.Spec.Paused
	var says []screen.Note
	var progress controller.Progress
	switch {
	case done:
	case w.held:
		if json.Unmarshal([]byte(d.Annotations[controller.StatusKey]), &progress) == nil {
			says = append(says, screen.Note{Code: string(progress.State), Text: progress.Note})
		}
	default:
		for _, c := range st.Conditions {
			if c.Type == appsv1.DeploymentProgressing {
				says = append(says, screen.Note{Code: c.Reason, Text: c.Message})
			}
		}
	}
	return done, says, nil
}

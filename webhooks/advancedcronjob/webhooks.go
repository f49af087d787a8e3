package advancedcronjob

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-advancedcronjob"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-advancedcronjob"
)

// New returns the webhooks of AdvancedCronJobs.
func New(api kinds.API, o kinds.Options) (kinds.Webhooks, error) {
	return kinds.New(api, kinds.Row[*appsv1beta1.AdvancedCronJob]{
		Kind: appsv1beta1.GroupVersion.WithKind("AdvancedCronJob"),
		Hub:  &appsv1beta1.AdvancedCronJob{}, Old: &appsv1alpha1.AdvancedCronJob{},
		MutatePath: MutatePath, ValidatePath: ValidatePath,
		Validate: schedule.Validate, ValidateUpdate: schedule.ValidateUpdate,
		Lookup:   jobFaults,
		Template: &kinds.Template{At: templateIn},
	}, o)
}

// templateIn returns the path of the pod template of an object: that of its Jobs or of its BroadcastJobs.
func templateIn(object map[string]any) (template, claims []string) {
	spec, _ := object["spec"].(map[string]any)
	templates, _ := spec["template"].(map[string]any)
	for _, member := range []string{"jobTemplate", "broadcastJobTemplate"} {
		if _, ok := templates[member].(map[string]any); ok {
			return []string{"spec", "template", member, "spec", "template"}, nil
		}
	}
	return nil, nil
}

// jobFaults are what the API server finds invalid in a Job of a template that is new or has changed.
func jobFaults(
	ctx context.Context, api kinds.API, c kinds.Change[*appsv1beta1.AdvancedCronJob],
) (found kinds.Finding, err error) {
	template := c.Now.Spec.Template.JobTemplate
	if template == nil || c.IsUpdate && equality.Semantic.DeepEqual(template, c.Before.Spec.Template.JobTemplate) {
		return found, nil
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, GenerateName: "dry-run-", Labels: template.Labels, Annotations: template.Annotations,
		},
		Spec: *template.Spec.DeepCopy(),
	}
	found.Faults, err = podtemplate.CheckWorkload(ctx, api, job, field.NewPath("spec", "template", "jobTemplate"))
	return found, err
}

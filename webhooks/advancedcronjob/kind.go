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
	"github.com/kruisekit/kruisekit/internal/templated"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// change is what is done to an AdvancedCronJob, under review.
type change = templated.Change[*appsv1beta1.AdvancedCronJob]

// kind is AdvancedCronJob, as its webhooks look at it.
func kind(api API) templated.Kind[*appsv1beta1.AdvancedCronJob] {
	return templated.Kind[*appsv1beta1.AdvancedCronJob]{
		Name:     "AdvancedCronJob",
		Hub:      func() *appsv1beta1.AdvancedCronJob { return &appsv1beta1.AdvancedCronJob{} },
		Old:      func() templated.Spoke[*appsv1beta1.AdvancedCronJob] { return &appsv1alpha1.AdvancedCronJob{} },
		Validate: validation.AdvancedCronJob, ValidateUpdate: validation.AdvancedCronJobUpdate,
		Lookup: func(ctx context.Context, r change) (field.ErrorList, error) { return jobFaults(ctx, api, r) },
		At:     templateIn,
	}
}

// templateIn returns the path of the pod template of an object: that of its Jobs or of its BroadcastJobs.
func templateIn(object map[string]any) (template, claims []string) {
	spec, _ := object["spec"].(map[string]any)
	templates, _ := spec["template"].(map[string]any)
	for _, member := range []string{"jobTemplate", "broadcastJobTemplate"} {
		if _, is := templates[member].(map[string]any); is {
			return []string{"spec", "template", member, "spec", "template"}, nil
		}
	}
	return nil, nil
}

// jobFaults are what the API server finds invalid in a Job of a template that is new or has changed.
func jobFaults(ctx context.Context, api API, r change) (field.ErrorList, error) {
	template := r.Now.Spec.Template.JobTemplate
	if template == nil || r.IsUpdate && equality.Semantic.DeepEqual(template, r.Before.Spec.Template.JobTemplate) {
		return nil, nil
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: "dry-run-", Labels: template.Labels, Annotations: template.Annotations},
		Spec:       *template.Spec.DeepCopy(),
	}
	return podtemplate.CheckWorkload(ctx, api, job, field.NewPath("spec", "template", "jobTemplate"))
}

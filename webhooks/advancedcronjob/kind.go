package advancedcronjob

import (
	"context"
	"errors"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/templated"
	"github.com/kruisekit/kruisekit/validation"
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
	err := api.Create(ctx, job, client.DryRunAll, client.FieldValidation(metav1.FieldValidationIgnore))
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || podtemplate.IsDenial(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil, nil // whether a cluster takes the Job now is for when it is created
	}
	at := field.NewPath("spec", "template", "jobTemplate").String()
	var faults field.ErrorList
	for _, cause := range status.Status().Details.Causes {
		faults = append(faults, &field.Error{Type: field.ErrorType(cause.Type), Field: at + "." + cause.Field, BadValue: field.OmitValueType{}, Detail: detailOf(cause)})
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("check the template by a dry run of a Job: %w", err)
	}
	return faults, nil
}

// detailOf is the message of a cause without what the type of the fault already says.
func detailOf(cause metav1.StatusCause) string {
	detail, _ := strings.CutPrefix(cause.Message, field.ErrorType(cause.Type).String())
	return strings.TrimPrefix(detail, ": ")
}

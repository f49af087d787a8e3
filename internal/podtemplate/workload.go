package podtemplate

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CheckWorkload returns what the API server finds invalid in a built-in workload that a template stands for, by a dry
// run of its creation. at is the path of the template, whose spec is that of the workload. Any other refusal is no
// fault: whether the cluster takes the workload is decided when the workload is created.
func CheckWorkload(ctx context.Context, api API, workload client.Object, at *field.Path) (field.ErrorList, error) {
	err := api.Create(ctx, workload, client.DryRunAll, client.FieldValidation(metav1.FieldValidationIgnore))
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || IsDenial(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil, nil
	}
	var faults field.ErrorList
	for _, cause := range status.Status().Details.Causes {
		faults = append(faults, fault(field.ErrorType(cause.Type), at.String()+"."+cause.Field, cause.Message))
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("check the template by a dry run of a workload: %w", err)
	}
	return faults, nil
}

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
)

// ContainerRecreateRequest returns what is invalid in a new request, with its defaults or without. What depends on the
// pod is for containerrestart.Admit, which rejects the same requests.
func ContainerRecreateRequest(r *appsv1beta1.ContainerRecreateRequest) field.ErrorList {
	return containerrestart.Check(r)
}

// ContainerRecreateRequestUpdate returns the changes that are forbidden.
func ContainerRecreateRequestUpdate(r, stored *appsv1beta1.ContainerRecreateRequest) field.ErrorList {
	return containerrestart.CheckUpdate(stored, r)
}

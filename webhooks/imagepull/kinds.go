package imagepull

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// The resources of the three kinds.
const (
	jobs  = "imagepulljobs"
	lists = "imagelistpulljobs"
	nodes = "nodeimages"
)

// read decodes an object of a request as v1beta1, whatever its version: all fields of v1alpha1 have the same names there.
func read(req admission.Request, raw []byte) (metav1.Object, error) {
	var into metav1.Object
	switch req.Resource.Resource {
	case jobs:
		into = &appsv1beta1.ImagePullJob{}
	case lists:
		into = &appsv1beta1.ImageListPullJob{}
	case nodes:
		into = &appsv1beta1.NodeImage{}
	default:
		return nil, fmt.Errorf("%s are not known here", req.Resource.Resource)
	}
	return into, review.Unmarshal(raw, into)
}

// check returns the faults of an object by itself.
func check(o metav1.Object) field.ErrorList {
	switch o := o.(type) {
	case *appsv1beta1.ImagePullJob:
		return validation.ImagePullJob(o)
	case *appsv1beta1.ImageListPullJob:
		return validation.ImageListPullJob(o)
	case *appsv1beta1.NodeImage:
		return validation.NodeImage(o)
	}
	return nil
}

// closed returns why requests of a resource are rejected, whatever the object; empty if they are not.
func (o Options) closed(resource string) string {
	switch {
	case o.NoDaemon:
		return "no image is pulled ahead: feature gate KruiseDaemon is off"
	case !o.Jobs && resource != nodes:
		return "no image is pulled for a job: feature gate ImagePullJobGate is off"
	}
	return ""
}

package imagepull_test

import (
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/webhooks/imagepull"
)

const (
	job  = "imagepulljobs"
	list = "imagelistpulljobs"
	node = "nodeimages"
)

// newRequest is an update when something is stored.
func newRequest(resource, version, now, stored string) admission.Request {
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Group: "apps.kruise.io", Version: version, Resource: resource},
		Object: runtime.RawExtension{Raw: []byte(now)},
	}}
	if stored != "" {
		r.Operation, r.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(stored)}
	}
	return r
}

// at is the time that new tags get.
func at() time.Time { return time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC) }

func newWebhooks(o imagepull.Options) *imagepull.Webhooks {
	o.Now = at
	return imagepull.New(o)
}

// open lets everything in.
func open() imagepull.Options { return imagepull.Options{Jobs: true} }

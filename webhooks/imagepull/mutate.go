package imagepull

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/write"
)

// Mutate answers with the defaults that the object lacks.
func (w *Webhooks) Mutate(_ context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	version, err := review.VersionOf(req, jobs, lists, nodes)
	if err != nil {
		return review.BadRequest(err)
	}
	content, err := review.Decode(req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	raw, sorted, err := sortTags(req, content)
	if err != nil {
		return review.BadRequest(err)
	}
	before, err := read(req, raw)
	if err != nil {
		// The schema comes after this webhook and names the fields of a wrong type.
		return admission.Allowed("")
	}
	patch, err := review.Changes(content, before, w.completed(before, version == review.Old && req.Operation == admissionv1.Create))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review.Patched(append(sorted, patch...))
}

// completed returns a copy with all defaults. In v1alpha1 a new job gets its finalizer here, in v1beta1 from its controller.
func (w *Webhooks) completed(before metav1.Object, finalized bool) metav1.Object {
	switch o := before.(type) {
	case *appsv1beta1.ImagePullJob:
		o = o.DeepCopy()
		o.Default()
		if finalized && !slices.Contains(o.Finalizers, appsv1beta1.ImagePullJobFinalizerKey) {
			o.Finalizers = append(o.Finalizers, appsv1beta1.ImagePullJobFinalizerKey)
		}
		return o
	case *appsv1beta1.ImageListPullJob:
		o = o.DeepCopy()
		o.Default()
		return o
	case *appsv1beta1.NodeImage:
		o = o.DeepCopy()
		o.Default()
		stamp(o, metav1.NewTime(w.options.Now()))
		return o
	}
	return before
}

// stamp sets the creation time of new tags.
func stamp(node *appsv1beta1.NodeImage, now metav1.Time) {
	for _, image := range node.Spec.Images {
		for i := range image.Tags {
			if image.Tags[i].CreatedAt == nil {
				image.Tags[i].CreatedAt = &now
			}
		}
	}
}

// sortTags sorts the tags of a NodeImage as they were sent, so that none loses a field that this program does not know. It
// returns the sorted object, which content becomes too, and the patch.
func sortTags(req admission.Request, content map[string]any) ([]byte, []write.Op, error) {
	if req.Resource.Resource != nodes {
		return req.Object.Raw, nil, nil
	}
	var patch []write.Op
	spec, _ := content["spec"].(map[string]any)
	images, _ := spec["images"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(images)) {
		image, _ := images[name].(map[string]any)
		tags, _ := image["tags"].([]any)
		sorted := slices.Clone(tags)
		slices.SortStableFunc(sorted, func(a, b any) int { return cmp.Compare(tagOf(a), tagOf(b)) })
		if reflect.DeepEqual(sorted, tags) {
			continue
		}
		image["tags"] = sorted
		patch = append(patch, write.Replace("/spec/images/"+write.Escape(name)+"/tags", sorted))
	}
	if len(patch) == 0 {
		return req.Object.Raw, nil, nil
	}
	raw, err := json.Marshal(content)
	return raw, patch, err
}

// tagOf is empty for what is no tag.
func tagOf(tag any) string {
	fields, _ := tag.(map[string]any)
	name, _ := fields["tag"].(string)
	return name
}

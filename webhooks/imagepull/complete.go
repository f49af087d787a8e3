package imagepull

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/write"
)

// completeJob sets the defaults. In v1alpha1 a new job gets its finalizer here, in v1beta1 from its controller.
func completeJob(c kinds.Change[*appsv1beta1.ImagePullJob]) {
	c.Now.Default()
	if c.Old && !c.IsUpdate && !slices.Contains(c.Now.Finalizers, appsv1beta1.ImagePullJobFinalizerKey) {
		c.Now.Finalizers = append(c.Now.Finalizers, appsv1beta1.ImagePullJobFinalizerKey)
	}
}

// completeNode sets the defaults, and the creation time of new tags.
func completeNode(node *appsv1beta1.NodeImage, now time.Time) {
	node.Default()
	for _, image := range node.Spec.Images {
		for i := range image.Tags {
			if image.Tags[i].CreatedAt == nil {
				image.Tags[i].CreatedAt = &metav1.Time{Time: now}
			}
		}
	}
}

// sortTags sorts the tags of a NodeImage as they were sent, so that none loses a field that this program does not know.
// It returns the patch.
func sortTags(content map[string]any) []write.Op {
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
	return patch
}

// tagOf is empty for what is no tag.
func tagOf(tag any) string {
	fields, _ := tag.(map[string]any)
	name, _ := fields["tag"].(string)
	return name
}

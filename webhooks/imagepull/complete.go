package imagepull

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/write"
)

// addFinalizer adds the finalizer to a new job of v1alpha1. In v1beta1 a job gets it from its controller.
func addFinalizer(content map[string]any, r kinds.Request) []write.Op {
	metadata, ok := content["metadata"].(map[string]any)
	if !r.Old || r.IsUpdate || !ok {
		return nil
	}
	all, _ := metadata["finalizers"].([]any)
	if slices.Contains(all, any(appsv1beta1.ImagePullJobFinalizerKey)) {
		return nil
	}
	metadata["finalizers"] = append(slices.Clone(all), appsv1beta1.ImagePullJobFinalizerKey)
	return []write.Op{write.Add("/metadata/finalizers", metadata["finalizers"])}
}

// arrangeTags sorts the tags of a NodeImage as they were sent, so that unknown fields of the tags are kept, and sets
// the creation time of new tags. It returns the patch.
func arrangeTags(content map[string]any, now time.Time) []write.Op {
	var patch []write.Op
	spec, _ := content["spec"].(map[string]any)
	images, _ := spec["images"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(images)) {
		image, _ := images[name].(map[string]any)
		tags, _ := image["tags"].([]any)
		sorted := slices.Clone(tags)
		slices.SortStableFunc(sorted, func(a, b any) int { return cmp.Compare(tagOf(a), tagOf(b)) })
		at := "/spec/images/" + write.Escape(name) + "/tags"
		if !reflect.DeepEqual(sorted, tags) {
			image["tags"] = sorted
			patch = append(patch, write.Replace(at, slices.Clone(sorted)))
		}
		for i := range sorted {
			if tag, ok := sorted[i].(map[string]any); ok && tag["createdAt"] == nil {
				created := maps.Clone(tag)
				created["createdAt"] = now.UTC().Format(time.RFC3339)
				sorted[i], image["tags"] = created, sorted
				patch = append(patch, write.Add(at+"/"+strconv.Itoa(i)+"/createdAt", created["createdAt"]))
			}
		}
	}
	return patch
}

// tagOf is empty for what is no tag.
func tagOf(tag any) string {
	fields, _ := tag.(map[string]any)
	name, _ := fields["tag"].(string)
	return name
}

package validation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// NodeImage returns what is invalid in a NodeImage that has its defaults.
func NodeImage(node *appsv1beta1.NodeImage) field.ErrorList {
	at := field.NewPath("spec", "images")
	var faults field.ErrorList
	if n := len(node.Spec.Images); n > imagepull.MaxImages {
		faults = append(faults, field.TooMany(at, n, imagepull.MaxImages))
	}
	for _, name := range slices.Sorted(maps.Keys(node.Spec.Images)) {
		if name == "" {
			faults = append(faults, field.Required(at, "the name of an image must not be empty"))
		}
		seen := sets.New[string]()
		for _, tag := range node.Spec.Images[name].Tags {
			// By tag, because the list is not in the user's order.
			here := at.Key(name).Child("tags").Key(tag.Tag)
			if seen.Has(tag.Tag) {
				faults = append(faults, field.Duplicate(here.Child("tag"), tag.Tag))
			}
			seen.Insert(tag.Tag)
			faults = append(faults, checkTag(&tag, here)...)
		}
	}
	return faults
}

func checkTag(tag *appsv1beta1.ImageTagSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if tag.Tag == "" {
		faults = append(faults, field.Required(at.Child("tag"), "a tag or a digest"))
	}
	if tag.CreatedAt == nil {
		faults = append(faults, field.Required(at.Child("createdAt"), "deadlines begin there"))
	}
	if tag.Version < 0 {
		faults = append(faults, field.Invalid(at.Child("version"), tag.Version, "must not be negative"))
	}
	switch policy := at.Child("pullPolicy"); {
	case tag.PullPolicy == nil:
		faults = append(faults, field.Required(policy, ""))
	case tag.PullPolicy.TTLSecondsAfterFinished == nil:
		faults = append(faults,
			field.Required(policy.Child("ttlSecondsAfterFinished"), "how long the tag stays listed once it was pulled"))
	}
	return faults
}

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// maxListed is how many images an ImageListPullJob may name.
const maxListed = 255

// ImagePullJob returns what is invalid in a job that has its defaults.
func ImagePullJob(job *appsv1beta1.ImagePullJob) field.ErrorList {
	at, spec := field.NewPath("spec"), &job.Spec
	faults := CheckNodeSelection(&spec.ImagePullJobTemplate, at)
	if fault := checkImage(spec.Image, at.Child("image")); fault != nil {
		faults = append(faults, fault)
	}
	return append(faults, CheckPull(&spec.ImagePullJobTemplate, at)...)
}

// ImagePullJobUpdate returns the changes that are forbidden: pull secrets have been copied by their names.
func ImagePullJobUpdate(job, stored *appsv1beta1.ImagePullJob) field.ErrorList {
	if slices.Equal(job.Spec.PullSecrets, stored.Spec.PullSecrets) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "pullSecrets"), "spec.pullSecrets is immutable")}
}

// ImageListPullJob returns what is invalid in a list that has its defaults, or would be invalid in its jobs.
func ImageListPullJob(list *appsv1beta1.ImageListPullJob) field.ErrorList {
	return ImageListPullJobSpec(&list.Spec, field.NewPath("spec"))
}

// ImageListPullJobSpec validates the spec of a list, or of a template of lists.
func ImageListPullJobSpec(spec *appsv1beta1.ImageListPullJobSpec, at *field.Path) field.ErrorList {
	faults := CheckNodeSelection(&spec.ImagePullJobTemplate, at)
	faults = append(faults, CheckImages(spec.Images, at.Child("images"))...)
	return append(faults, CheckPull(&spec.ImagePullJobTemplate, at)...)
}

// CheckNodeSelection validates which nodes are selected.
func CheckNodeSelection(t *appsv1beta1.ImagePullJobTemplate, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if s := t.Selector; s != nil {
		here, seen := at.Child("selector"), sets.New[string]()
		if t.PodSelector != nil {
			faults = append(faults, field.Forbidden(here, "cannot be combined with podSelector"))
		}
		for i, name := range s.Names {
			if seen.Has(name) {
				faults = append(faults, field.Duplicate(here.Child("names").Index(i), name))
			}
			seen.Insert(name)
		}
		if len(s.Names) > 0 && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
			faults = append(faults,
				field.Forbidden(here.Child("names"), "cannot be combined with matchLabels or matchExpressions"))
		}
		faults = append(faults, LabelSelector(&s.LabelSelector, here)...)
	}
	if s := t.PodSelector; s != nil {
		faults = append(faults, LabelSelector(&s.LabelSelector, at.Child("podSelector"))...)
	}
	return faults
}

func checkImage(image string, at *field.Path) *field.Error {
	if image == "" {
		return field.Required(at, "the image to pull")
	}
	if _, err := imagepull.Parse(image); err != nil {
		return field.Invalid(at, image, err.Error())
	}
	return nil
}

// CheckImages validates the images of a list.
func CheckImages(images []string, at *field.Path) field.ErrorList {
	if len(images) == 0 {
		return field.ErrorList{field.Required(at, "the images to pull")}
	}
	var faults field.ErrorList
	seen := sets.New[string]()
	for i, image := range images {
		if seen.Has(image) {
			faults = append(faults, field.Duplicate(at.Index(i), image))
		}
		seen.Insert(image)
	}
	if n := len(images); n > maxListed {
		return append(faults, field.TooMany(at, n, maxListed))
	}
	for i, image := range images {
		if fault := checkImage(image, at.Index(i)); fault != nil {
			faults = append(faults, fault)
		}
	}
	return faults
}

// CheckPull validates how nodes pull.
func CheckPull(t *appsv1beta1.ImagePullJobTemplate, at *field.Path) field.ErrorList {
	faults := checkPace(t, at)
	if n := len(t.PullSecrets); n > imagepull.MaxPullSecrets {
		faults = append(faults, field.TooMany(at.Child("pullSecrets"), n, imagepull.MaxPullSecrets))
	}
	if n := imagepull.SandboxBytes(t.SandboxConfig); n > imagepull.MaxSandboxBytes {
		faults = append(faults, field.Invalid(at.Child("sandboxConfig"), n,
			fmt.Sprintf("must be at most %d bytes as JSON", imagepull.MaxSandboxBytes)))
	}
	return faults
}

// checkPace validates how many nodes pull at once, and for how long.
func checkPace(t *appsv1beta1.ImagePullJobTemplate, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	if fault := checkParallelism(t.Parallelism, at.Child("parallelism")); fault != nil {
		faults = append(faults, fault)
	}
	here, policy := at.Child("completionPolicy"), t.CompletionPolicy
	switch policy.Type {
	case appsv1beta1.Always:
		timeout := int64(appsv1beta1.DefaultImagePullTimeoutSeconds)
		if p := t.PullPolicy; p != nil && p.TimeoutSeconds != nil {
			timeout = int64(*p.TimeoutSeconds)
		}
		if d := policy.ActiveDeadlineSeconds; d != nil && *d < timeout {
			faults = append(faults, field.Invalid(here.Child("activeDeadlineSeconds"), *d,
				"must not be less than pullPolicy.timeoutSeconds, which is "+strconv.FormatInt(timeout, 10)))
		}
	case appsv1beta1.Never:
		if policy.ActiveDeadlineSeconds != nil {
			faults = append(faults,
				field.Forbidden(here.Child("activeDeadlineSeconds"), "a job that never completes has no deadline"))
		}
		if policy.TTLSecondsAfterFinished != nil {
			faults = append(faults,
				field.Forbidden(here.Child("ttlSecondsAfterFinished"), "a job that never completes is never finished"))
		}
	default:
		faults = append(faults, field.NotSupported(here.Child("type"), policy.Type,
			[]appsv1beta1.CompletionPolicyType{appsv1beta1.Always, appsv1beta1.Never}))
	}
	return faults
}

func checkParallelism(p *intstr.IntOrString, at *field.Path) *field.Error {
	if p == nil {
		return nil
	}
	n := int64(p.IntVal)
	if p.Type == intstr.String {
		var err error
		if n, err = strconv.ParseInt(p.StrVal, 10, 32); err != nil {
			return field.Invalid(at, p.StrVal, "must be a number of nodes, and no percentage")
		}
	}
	if n < 0 {
		return field.Invalid(at, p.String(), "must not be negative")
	}
	return nil
}

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

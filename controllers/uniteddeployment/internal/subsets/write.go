package subsets

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// content is what a UnitedDeployment decides about a workload from pass to pass. All else in a workload follows from
// the template, and so changes with the revision.
type content struct {
	revision, patch                     string
	replicas, partition, maxUnavailable int32
}

func (c *Child) content() content {
	return content{
		c.Revision, c.Object.GetAnnotations()[v1beta1.AnnotationSubsetPatchKey], c.Replicas, c.Partition, c.MaxUnavailable(),
	}
}

// update returns the write that makes the workload of a subset the rendered one. Another revision or another patch
// replaces the spec; otherwise the numbers alone are written, and the fields of other writers stay. Labels and
// annotations are added.
func (t *Target) update(have, wanted content) (*write.Write, error) {
	content, err := stored.Content(t.Child.Object)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Child.Object.GetName(), err)
	}
	was := (&unstructured.Unstructured{Object: content}).DeepCopy()
	is := was.DeepCopy()
	is.SetLabels(merged(was.GetLabels(), t.Rendered.GetLabels()))
	is.SetAnnotations(merged(was.GetAnnotations(), t.Rendered.GetAnnotations()))
	if have.revision != wanted.revision || have.patch != wanted.patch {
		is.Object["spec"] = t.Rendered.Object["spec"]
	} else if err := t.setNumbers(is); err != nil {
		return nil, fmt.Errorf("change %s: %w", is.GetName(), err)
	}
	was.SetUID("") // so that the patch has the UID
	data, err := client.MergeFrom(was).Data(is)
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", is.GetName(), err)
	}
	return &write.Write{Verb: write.Patch, Object: is, Type: types.MergePatchType, Body: write.Bytes(data)}, nil
}

// setNumbers sets the replicas, the partition and how many pods may be unavailable as they are rendered.
func (t *Target) setNumbers(is *unstructured.Unstructured) error {
	strategy := t.Child.strategy()
	for _, path := range [][]string{
		{"spec", "replicas"},
		{"spec", strategy, "rollingUpdate", "partition"},
		{"spec", strategy, "rollingUpdate", "maxUnavailable"},
	} {
		value, found, err := unstructured.NestedFieldNoCopy(t.Rendered.Object, path...)
		if err != nil {
			return err
		}
		if !found {
			unstructured.RemoveNestedField(is.Object, path...)
		} else if err := unstructured.SetNestedField(is.Object, value, path...); err != nil {
			return err
		}
	}
	return nil
}

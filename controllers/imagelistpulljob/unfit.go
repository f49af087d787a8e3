package imagelistpulljob

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// mostImages of a list.
const mostImages = 255

// unfit says why admission would refuse a list that has its defaults, or all of its jobs; nil where it would not. Of the images
// themselves the plan tells.
func unfit(spec *v1beta1.ImageListPullJobSpec) error {
	if n := len(spec.Images); n == 0 || n > mostImages {
		return fmt.Errorf("spec.images: %d images, want 1 to %d", n, mostImages)
	}
	if name, is := repeated(spec.Images); is {
		return fmt.Errorf("spec.images: %q is listed twice", name)
	}
	if err := unfitNodes(spec); err != nil {
		return err
	}
	if err := unfitParallelism(spec.Parallelism); err != nil {
		return err
	}
	switch c := spec.CompletionPolicy; c.Type {
	case v1beta1.Always:
		if d, timeout := c.ActiveDeadlineSeconds, *spec.PullPolicy.TimeoutSeconds; d != nil && *d < int64(timeout) {
			return fmt.Errorf("spec.completionPolicy.activeDeadlineSeconds: %d is less than the %d of pullPolicy.timeoutSeconds", *d, timeout)
		}
	case v1beta1.Never:
		if c.ActiveDeadlineSeconds != nil || c.TTLSecondsAfterFinished != nil {
			return fmt.Errorf("spec.completionPolicy: a list that never completes has neither activeDeadlineSeconds nor ttlSecondsAfterFinished")
		}
	default:
		return fmt.Errorf("spec.completionPolicy.type: %q is neither %s nor %s", c.Type, v1beta1.Always, v1beta1.Never)
	}
	return nil
}

func unfitNodes(spec *v1beta1.ImageListPullJobSpec) error {
	if p := spec.PodSelector; p != nil {
		if _, err := metav1.LabelSelectorAsSelector(&p.LabelSelector); err != nil {
			return fmt.Errorf("spec.podSelector: %w", err)
		}
	}
	s := spec.Selector
	if s == nil {
		return nil
	}
	if spec.PodSelector != nil {
		return fmt.Errorf("spec.selector: there is a podSelector, too")
	}
	if _, err := metav1.LabelSelectorAsSelector(&s.LabelSelector); err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	if len(s.Names) > 0 && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		return fmt.Errorf("spec.selector: there are names and labels")
	}
	if name, is := repeated(s.Names); is {
		return fmt.Errorf("spec.selector.names: %q is listed twice", name)
	}
	return nil
}

func unfitParallelism(p *intstr.IntOrString) error {
	n := int64(ptr.Deref(p, intstr.IntOrString{}).IntVal)
	if p != nil && p.Type == intstr.String {
		var err error
		if n, err = strconv.ParseInt(p.StrVal, 10, 32); err != nil {
			return fmt.Errorf("spec.parallelism: %q is no number", p.StrVal)
		}
	}
	if n < 0 {
		return fmt.Errorf("spec.parallelism: %d is negative", n)
	}
	return nil
}

// repeated is something that is in a list twice.
func repeated(all []string) (string, bool) {
	sorted := slices.Sorted(slices.Values(all))
	for i := range sorted[min(1, len(sorted)):] {
		if sorted[i] == sorted[i+1] {
			return sorted[i], true
		}
	}
	return "", false
}

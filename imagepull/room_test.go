package imagepull_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// A NodeImage has limits, and no namespace gets to all that is left.
func TestRoom(t *testing.T) {
	// owned lists n images, tags or owners of the job's namespace, and others of another one.
	listed := func(ours, others int, add func(n *v1beta1.NodeImage, i int, job string)) func(*v1beta1.NodeImage) {
		return func(n *v1beta1.NodeImage) {
			for i := range ours + others {
				add(n, i, fmt.Sprintf("job-%d", i))
			}
			i := 0
			for name, image := range n.Spec.Images {
				for at := range image.Tags {
					for o := range image.Tags[at].OwnerReferences {
						if i++; i > ours {
							n.Spec.Images[name].Tags[at].OwnerReferences[o].Namespace = "other"
						}
					}
				}
			}
		}
	}
	images := func(n *v1beta1.NodeImage, i int, job string) { lists(fmt.Sprintf("image-%d:1", i), 0, job)(n) }
	tags := func(n *v1beta1.NodeImage, i int, job string) { lists(fmt.Sprintf("nginx:v%d", i), 0, job)(n) }
	owners := func(n *v1beta1.NodeImage, i int, job string) {
		if i == 0 {
			lists("nginx:1", 0)(n)
		}
		edit("nginx", func(s *v1beta1.ImageTagSpec) { s.OwnerReferences = append(s.OwnerReferences, owner(job)) })(n)
	}
	for name, test := range map[string]struct {
		change func(*v1beta1.NodeImage)
		full   bool
	}{
		"a namespace may list many images":                  {listed(239, 0, images), false},
		"and leaves some to others":                         {listed(240, 0, images), true},
		"which have them":                                   {listed(0, 255, images), false},
		"up to the limit":                                   {listed(0, 256, images), true},
		"a namespace may list many tags of an image":        {listed(119, 0, tags), false},
		"and leaves some tags to others":                    {listed(120, 0, tags), true},
		"which have these":                                  {listed(7, 120, tags), false},
		"up to the limit of tags":                           {listed(8, 120, tags), true},
		"many jobs of a namespace may ask for the same tag": {listed(239, 0, owners), false},
		"and leave others a place beside them":              {listed(240, 0, owners), true},
		"which they have":                                   {listed(0, 255, owners), false},
		"up to the limit of owners":                         {listed(0, 256, owners), true},
	} {
		t.Run(name, func(t *testing.T) {
			n, r := nodeImage("n1", test.change), request(pullJob("late", "nginx:1"))
			changed, err := r.Apply(n)
			if errors.Is(err, imagepull.ErrFull) != test.full || (changed == nil) != test.full {
				t.Errorf("apply: %v", err)
			}
			plan, err := r.Review([]*v1beta1.NodeImage{n})
			if err != nil || (len(plan.Update) == 0) != test.full {
				t.Errorf("next updates: %v, %v", plan.Update, err)
			}
			if test.full && (codes(plan.Notes) != "NodeImageFull n1" || plan.RequeueAfter == 0) {
				t.Errorf("notes %q, again after %s", codes(plan.Notes), plan.RequeueAfter)
			}
		})
	}
}

package imagepull_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// A NodeImage has limits, however long the names and the sandboxConfigs of its jobs are.
func TestRoom(t *testing.T) {
	has := func(namespace string, images int, change func(*v1beta1.ImageSpec)) func(*v1beta1.NodeImage) {
		return func(n *v1beta1.NodeImage) {
			for i := range images {
				name := fmt.Sprintf("%s-%d", namespace, i)
				lists(name+":1", 0, "a")(n)
				edit(name, func(s *v1beta1.ImageTagSpec) { s.OwnerReferences[0].Namespace = namespace })(n)
				image := n.Spec.Images[name]
				change(&image)
				n.Spec.Images[name] = image
			}
		}
	}
	short := func(*v1beta1.ImageSpec) {}
	secrets := func(image *v1beta1.ImageSpec) {
		for i := range 32 {
			image.PullSecrets = append(image.PullSecrets, v1beta1.ReferenceObject{
				Namespace: "kruise-daemon-config", Name: fmt.Sprintf("%s-%d", strings.Repeat("x", 240), i), Mode: "batch",
			})
		}
	}
	sandboxes := func(value string) func(*v1beta1.ImageSpec) {
		return func(image *v1beta1.ImageSpec) {
			image.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"a": value}}
		}
	}
	plain, escaped := sandboxes(strings.Repeat("x", 2000)), sandboxes(strings.Repeat("<", 2000))
	late := func(n *v1beta1.NodeImage) { lists("nginx:1", 0, "late")(n) }
	for name, test := range map[string]struct {
		have []func(*v1beta1.NodeImage)
		want string // updates and notes
	}{
		"many images":              {list(has("other", 255, short)), "[n1] "},
		"up to the limit":          {list(has("other", 256, short)), "[] NodeImageFull n1"},
		"long images":              {list(has("other", 80, secrets)), "[n1] "},
		"up to the limit of bytes": {list(has("other", 110, secrets)), "[] NodeImageFull n1"},

		"sandboxConfigs count as they are stored": {list(has("other", 80, plain)), "[n1] "},
		"and escaped ones with what that takes":   {list(has("other", 80, escaped)), "[] NodeImageFull n1"},
		"a job that is listed gets its secrets":   {list(has("shop", 80, secrets), late), "[n1] "},
		"and does without where there is no room": {list(has("shop", 110, secrets), late), "[] "},
	} {
		t.Run(name, func(t *testing.T) {
			n, r := nodeImage("n1", test.have...), request(pullJob("late", "nginx:1"), "s")
			plan, err := r.Review([]*v1beta1.NodeImage{n})
			if got := fmt.Sprint(plan.Update, " ", codes(plan.Notes)); got != test.want || err != nil {
				t.Errorf("next updates %s, want %s, %v", got, test.want, err)
			}
			changed, err := r.Apply(n)
			if (changed == nil) != (len(plan.Update) == 0) || err != nil && !errors.Is(err, imagepull.ErrFull) {
				t.Errorf("apply: %v, %v", changed != nil, err)
			}
			full := strings.Contains(test.want, "Full")
			if full != strings.Contains(plan.Status.Message, "without room for another image: 1") ||
				full != (plan.RequeueAfter > 0) {
				t.Errorf("message %q, again after %s", plan.Status.Message, plan.RequeueAfter)
			}
			if changed != nil && len(jsonOf(changed.Spec)) > imagepull.MaxNodeBytes {
				t.Errorf("%d bytes", len(jsonOf(changed.Spec)))
			}
		})
	}
}

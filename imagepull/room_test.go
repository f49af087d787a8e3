package imagepull_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// A NodeImage has limits, and no namespace gets to all that is left, however long the names and the sandboxConfigs of
// its jobs are.
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
	sandboxes := func(image *v1beta1.ImageSpec) {
		image.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"a": strings.Repeat("<", 2000)}}
	}
	late := func(n *v1beta1.NodeImage) { lists("nginx:1", 0, "late")(n) }
	for name, test := range map[string]struct {
		have []func(*v1beta1.NodeImage)
		want string // updates and notes
	}{
		"a namespace may list many images":        {list(has("shop", 239, short)), "[n1] "},
		"and leaves some to others":               {list(has("shop", 240, short)), "[] NodeImageFull n1"},
		"which have them":                         {list(has("other", 255, short)), "[n1] "},
		"up to the limit":                         {list(has("other", 256, short)), "[] NodeImageFull n1"},
		"a namespace may list long images":        {list(has("shop", 80, secrets)), "[n1] "},
		"and leaves some bytes to others":         {list(has("shop", 94, secrets)), "[] NodeImageFull n1"},
		"which have these":                        {list(has("other", 94, secrets)), "[n1] "},
		"up to the limit of bytes":                {list(has("other", 110, secrets)), "[] NodeImageFull n1"},
		"long sandboxConfigs count":               {list(has("other", 80, sandboxes)), "[] NodeImageFull n1"},
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

// Nodes pull without a sandboxConfig that is too long, and a note reports it.
func TestLongSandbox(t *testing.T) {
	for bytes, kept := range map[int]bool{16 << 10: true, 16<<10 + 1: false} {
		c := &v1beta1.SandboxConfig{Labels: map[string]string{"a": ""}}
		c.Labels["a"] = strings.Repeat("x", bytes-imagepull.SandboxBytes(c))
		r := request(pullJob("late", "nginx:1", func(j *v1beta1.ImagePullJob) { j.Spec.SandboxConfig = c }))
		if got := apply(t, r, nodeImage("n1")).Spec.Images["nginx"]; (got.SandboxConfig != nil) != kept {
			t.Errorf("%d bytes: it is kept: %t", bytes, !kept)
		}
		plan, err := r.Review([]*v1beta1.NodeImage{nodeImage("n1")})
		if err != nil || len(plan.Update) != 1 || (codes(plan.Notes) == "") != kept ||
			!kept && (plan.Notes[0].Code != imagepull.NoteSandbox || !imagepull.NeedsUser(plan.Notes[0])) {
			t.Errorf("%d bytes: next updates %v, notes %v, %v", bytes, plan.Update, plan.Notes, err)
		}
	}
}

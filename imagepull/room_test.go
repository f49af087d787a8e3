package imagepull_test

import (
	"errors"
	"fmt"
	"strings"
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

// The labels and annotations for container runtimes of one namespace leave NodeImages small enough for the patches of
// others.
func TestSandboxRoom(t *testing.T) {
	config := func(bytes int) *v1beta1.SandboxConfig {
		return &v1beta1.SandboxConfig{Annotations: map[string]string{"a": strings.Repeat("x", bytes)}}
	}
	has := func(namespace string, images, bytes int) func(*v1beta1.NodeImage) {
		return func(n *v1beta1.NodeImage) {
			for i := range images {
				name := fmt.Sprintf("%s-%d", namespace, i)
				lists(name+":1", 0, "a")(n)
				edit(name, func(s *v1beta1.ImageTagSpec) { s.OwnerReferences[0].Namespace = namespace })(n)
				image := n.Spec.Images[name]
				image.SandboxConfig = config(bytes)
				n.Spec.Images[name] = image
			}
		}
	}
	for name, test := range map[string]struct {
		bytes int
		have  []func(*v1beta1.NodeImage)
		kept  bool
	}{
		"a job may have many":                          {16000, nil, true},
		"and not more":                                 {700000, nil, false},
		"which counts as it is stored":                 {16384 - 7, nil, true},
		"to the byte":                                  {16384 - 6, nil, false},
		"the images of a namespace have many":          {16000, list(has("shop", 29, 16000)), true},
		"and leave some to others":                     {16000, list(has("shop", 30, 16000)), false},
		"which have them":                              {16000, list(has("other", 30, 16000)), true},
		"up to the limit":                              {16000, list(has("other", 32, 16000)), false},
		"those of all namespaces count":                {16000, list(has("other", 10, 16000), has("shop", 22, 16000)), false},
		"what was stored before the limits counts too": {1, list(has("other", 1, 700000)), false},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeImage("n1", test.have...)
			r := request(pullJob("late", "nginx:1", func(j *v1beta1.ImagePullJob) { j.Spec.SandboxConfig = config(test.bytes) }))
			if got := apply(t, r, n).Spec.Images["nginx"]; len(got.Tags) != 1 || (got.SandboxConfig != nil) != test.kept {
				t.Errorf("%d tags, %d bytes", len(got.Tags), len(jsonOf(got.SandboxConfig)))
			}
			plan, err := r.Review([]*v1beta1.NodeImage{n})
			if err != nil || len(plan.Update) != 1 || (codes(plan.Notes) == "") != test.kept {
				t.Errorf("next updates %v, notes %v, %v", plan.Update, plan.Notes, err)
			}
			for _, n := range plan.Notes {
				if n.Code != imagepull.NoteSandbox || !imagepull.NeedsUser(n) {
					t.Errorf("note %v", n)
				}
			}
		})
	}
}

func TestSandboxBytes(t *testing.T) {
	for _, text := range []string{"", "plain", "é\u2028", "<&>\"\\\x01"} {
		c := &v1beta1.SandboxConfig{Labels: map[string]string{text: text}}
		if got, want := imagepull.SandboxBytes(c), len(jsonOf(c.Labels))-1; got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}

// What one namespace lists leaves NodeImages small enough for the store, however long its names are.
func TestBytesRoom(t *testing.T) {
	has := func(namespace string, images int) func(*v1beta1.NodeImage) {
		secrets := make([]v1beta1.ReferenceObject, 32)
		for i := range secrets {
			secrets[i] = v1beta1.ReferenceObject{
				Namespace: "kruise-daemon-config", Name: fmt.Sprintf("%s-%d", strings.Repeat("x", 240), i), Mode: "batch",
			}
		}
		return func(n *v1beta1.NodeImage) {
			for i := range images {
				name := fmt.Sprintf("%s-%d", namespace, i)
				lists(name+":1", 0, "a")(n)
				edit(name, func(s *v1beta1.ImageTagSpec) { s.OwnerReferences[0].Namespace = namespace })(n)
				secretsOf(name, secrets...)(n)
			}
		}
	}
	late := func(n *v1beta1.NodeImage) { lists("nginx:1", 0, "late")(n) }
	for name, test := range map[string]struct {
		have []func(*v1beta1.NodeImage)
		want string // updates and notes
	}{
		"a namespace may list much":               {list(has("shop", 80)), "[n1] "},
		"and leaves some to others":               {list(has("shop", 93)), "[] NodeImageFull n1"},
		"which have it":                           {list(has("other", 93)), "[n1] "},
		"up to the limit":                         {list(has("other", 110)), "[] NodeImageFull n1"},
		"a job that is listed gets its secrets":   {list(has("shop", 80), late), "[n1] "},
		"and does without where there is no room": {list(has("shop", 110), late), "[] "},
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
			if full := strings.Contains(test.want, "Full"); full != strings.Contains(plan.Status.Message,
				"without room for another image: 1") {
				t.Errorf("message %q", plan.Status.Message)
			}
			if changed != nil && len(jsonOf(changed.Spec)) > imagepull.MaxNodeBytes {
				t.Errorf("%d bytes", len(jsonOf(changed.Spec)))
			}
		})
	}
}

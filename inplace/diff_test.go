package inplace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
)

// A field that the types lack reaches new pods alone. The order of containers is no change.
func TestDiffOfUnknownFields(t *testing.T) {
	decode := func(text string) *corev1.PodTemplateSpec {
		template, err := revision.Decode([]byte(`{"spec":{"template":` + text + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		return template
	}
	from := decode(`{"spec":{"newer":{"x":1},"containers":[{"name":"a","image":"a:1","newer":1},{"name":"b","newer":2}]}}`)
	for name, c := range map[string]struct {
		to   string
		want []string
	}{
		"an image": {
			to: `{"spec":{"newer":{"x":1},"containers":[{"name":"b","newer":2},{"name":"a","image":"a:2","newer":1}]}}`,
		},
		"other values": {
			to:   `{"spec":{"newer":{"x":2},"containers":[{"name":"a","image":"a:2","newer":1},{"name":"b","newer":3}]}}`,
			want: []string{"spec.containers[b].newer", "spec.newer.x"},
		},
		"none": {
			to: `{"spec":{"containers":[{"name":"a","image":"a:2"},{"name":"b"}]}}`, want: []string{"spec"},
		},
	} {
		_, err := inplace.Diff(from, decode(c.to), inplace.Policy{})
		var blocked *inplace.BlockedError
		var got []string
		if errors.As(err, &blocked) {
			for _, b := range blocked.Blocks {
				got = append(got, b.Path)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestDiff(t *testing.T) {
	resizable := inplace.Policy{Env: inplace.EnvRestart, Resources: inplace.ResourcesReplaced}
	feeds := template(container("c1", "app:1", fed("CONF", "metadata.labels['conf']")), container("c2", "app:1"))
	sized := template(container("c1", "app:1", requests("cpu", "1", "memory", "1Gi"), limits("cpu", "2", "memory", "2Gi")),
		container("c2", "app:1", requests("cpu", "1")))
	cases := map[string]struct {
		from, to *corev1.PodTemplateSpec
		options  inplace.Policy
		noDaemon bool // leaves Env at its default
		want     inplace.Change
	}{
		"no templates: without a template nothing changes": {},
		"what feeds a container is reported by container, and the rest apart": {
			from: with(feeds, label("conf", "1")),
			to:   with(feeds, image(0, "app:2"), label("conf", "2"), label("other", "1")),
			want: inplace.Change{
				Images: images("c1", "app:2"), Env: []string{"c1"}, Metadata: inplace.Metadata{Labels: values("other", "1")},
				RefMetadata: map[string]metav1.ObjectMeta{"c1": {Labels: map[string]string{"conf": "2"}}},
			},
		},
		"first label that feeds: a variable that was empty gets a value": {
			from: feeds, to: with(feeds, label("conf", "1")),
			want: inplace.Change{
				Env: []string{"c1"}, RefMetadata: map[string]metav1.ObjectMeta{"c1": {Labels: map[string]string{"conf": "1"}}},
			},
		},
		"a variable gets empty; a removed key has no place by container": {
			from: with(feeds, label("conf", "1")),
			to:   feeds,
			want: inplace.Change{Env: []string{"c1"}, Metadata: inplace.Metadata{Labels: map[string]*string{"conf": nil}}},
		},
		"fed but ignored: the variable may stay as it is until the next start": {
			from:    feeds,
			to:      with(feeds, label("conf", "1")),
			options: inplace.Policy{Env: inplace.EnvIgnore},
			want:    inplace.Change{Metadata: inplace.Metadata{Labels: values("conf", "1")}},
		},
		"cpu and image of two: both kinds at once, by container": {
			from: sized,
			to: with(sized, image(0, "app:2"), func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Limits = amounts("cpu", "3", "memory", "2Gi")
				p.Spec.Containers[1].Resources.Requests = amounts("cpu", "2")
			}),
			options: resizable,
			want: inplace.Change{Images: images("c1", "app:2"), Resources: map[string]corev1.ResourceRequirements{
				"c1": {Limits: amounts("cpu", "3")}, "c2": {Requests: amounts("cpu", "2")},
			}},
		},
		"same amount, written otherwise, while fixed": {
			from: sized,
			to: with(sized, image(0, "app:2"), func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Limits = amounts("cpu", "2000m", "memory", "2048Mi")
			}),
			want: inplace.Change{Images: images("c1", "app:2")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !tc.noDaemon && tc.options.Env == inplace.EnvBlock {
				tc.options.Env = inplace.EnvRestart
			}
			got, err := inplace.Diff(tc.from, tc.to, tc.options)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if d := cmp.Diff(tidy(tc.want), tidy(*got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if empty := len(tidy(tc.want)) == len("{}"); got.Empty() != empty {
				t.Errorf("empty is %v", got.Empty())
			}
		})
	}
}

func TestDiffBlocks(t *testing.T) {
	resizable := inplace.Policy{Env: inplace.EnvRestart, Resources: inplace.ResourcesReplaced}
	one := template(container("c1", "app:1", func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "LEVEL", Value: "info"}}
	}))
	sized := template(container("c1", "app:1", requests("cpu", "1", "memory", "1Gi"),
		limits("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "1")))
	feeds := template(container("c1", "app:1", fed("CONF", "metadata.annotations['conf']")))
	resources := func(f func(*corev1.ResourceRequirements)) *corev1.PodTemplateSpec {
		return with(sized, func(p *corev1.PodTemplateSpec) { f(&p.Spec.Containers[0].Resources) })
	}
	first := func(f func(*corev1.Container)) *corev1.PodTemplateSpec {
		return with(one, image(0, "app:2"), func(p *corev1.PodTemplateSpec) { f(&p.Spec.Containers[0]) })
	}
	whole := func(f func(*corev1.PodSpec)) *corev1.PodTemplateSpec {
		return with(one, func(p *corev1.PodTemplateSpec) { f(&p.Spec) })
	}
	cases := map[string]struct {
		from, to *corev1.PodTemplateSpec
		options  inplace.Policy
		noDaemon bool     // leaves Env at its default
		want     []string // paths
	}{
		"added variable: an environment is fixed": {
			from: one, want: []string{"spec.containers[c1].env[NEW]"},
			to: first(func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "NEW", Value: "1"}) }),
		},
		"changed variable: the very field is reported": {
			from: one, want: []string{"spec.containers[c1].env[LEVEL].value"},
			to: first(func(c *corev1.Container) { c.Env[0].Value = "debug" }),
		},
		"pull policy and resources: every reason is reported": {
			from: one,
			want: []string{"spec.containers[c1].imagePullPolicy", "spec.containers[c1].resources.requests"},
			to: first(func(c *corev1.Container) {
				c.ImagePullPolicy = corev1.PullNever
				c.Resources.Requests = amounts("cpu", "1")
			}),
		},
		"cpu while fixed: resources are fixed by default": {
			from: sized,
			want: []string{"spec.containers[c1].resources.limits.cpu", "spec.containers[c1].resources.requests.cpu"},
			to: resources(func(r *corev1.ResourceRequirements) {
				r.Requests["cpu"], r.Limits["cpu"] = amounts("cpu", "2")["cpu"], amounts("cpu", "2")["cpu"]
			}),
		},
		"class of service: a pod keeps its class": {
			from: sized, options: resizable, want: []string{"spec.containers"},
			to: resources(func(r *corev1.ResourceRequirements) { r.Limits["cpu"] = amounts("cpu", "2")["cpu"] }),
		},
		"gpu: only cpu and memory can be resized": {
			from:    sized,
			options: resizable,
			want: []string{
				"spec.containers[c1].resources.limits.nvidia.com/gpu", "spec.containers[c1].resources.requests.nvidia.com/gpu",
			},
			to: resources(func(r *corev1.ResourceRequirements) { r.Limits["nvidia.com/gpu"] = amounts("gpu", "2")["gpu"] }),
		},
		"removed limit: no API server takes a limit away": {
			from:    sized,
			options: everything(),
			want:    []string{"spec.containers[c1].resources.limits.cpu"},
			to:      resources(func(r *corev1.ResourceRequirements) { delete(r.Limits, "cpu") }),
		},
		"added container: a pod gets no more of them": {
			from: one, want: []string{"spec.containers[c2]"},
			to: whole(func(s *corev1.PodSpec) { s.Containers = append(s.Containers, container("c2", "app:1")) }),
		},
		"several: commands, mounts, volumes, places and all else are fixed": {
			from: one,
			want: []string{
				"spec.containers[c1].command", "spec.containers[c1].volumeMounts", "spec.hostNetwork", "spec.nodeSelector",
				"spec.volumes",
			},
			to: whole(func(s *corev1.PodSpec) {
				s.Containers[0].Command = []string{"run"}
				s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
				s.HostNetwork, s.NodeSelector = true, map[string]string{"disk": "ssd"}
				s.Volumes = []corev1.Volume{{Name: "data"}}
			}),
		},
		"a later variable may refer to an earlier one, so their order counts": {
			want: []string{"spec.containers[c1].env"},
			from: first(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}}
			}),
			to: first(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "B", Value: "$(A)"}, {Name: "A", Value: "1"}}
			}),
		},
		"init container: it has run, and does not run again": {
			options: everything(), want: []string{"spec.initContainers[init].image"},
			from: whole(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{container("init", "init:1")} }),
			to:   whole(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{container("init", "init:2")} }),
		},
		"annotation that fed: where no daemon runs, no container restarts": {
			from:     feeds,
			to:       with(feeds, annotate("conf", "1")),
			noDaemon: true,
			want:     []string{"spec.containers[c1].env[CONF]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !tc.noDaemon && tc.options.Env == inplace.EnvBlock {
				tc.options.Env = inplace.EnvRestart
			}
			got, err := inplace.Diff(tc.from, tc.to, tc.options)
			var blocked *inplace.BlockedError
			if !errors.As(err, &blocked) || got != nil {
				t.Fatalf("want it blocked, got %v, %v", got, err)
			}
			var paths []string
			for _, b := range blocked.Blocks {
				paths = append(paths, b.Path)
				if b.Why == "" || !strings.Contains(err.Error(), b.Path+": "+b.Why) {
					t.Errorf("%s is not told why: %v", b.Path, err)
				}
			}
			if d := cmp.Diff(tc.want, paths); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestBlockedErrorIsShort keeps messages of large changes readable.
func TestBlockedErrorIsShort(t *testing.T) {
	e := &inplace.BlockedError{}
	for range 7 {
		e.Blocks = append(e.Blocks, inplace.Block{Path: "a", Why: "b"})
	}
	if want := "cannot be changed in place: a: b; a: b; a: b; a: b; a: b; and 2 more"; e.Error() != want {
		t.Errorf("want %q, got %q", want, e.Error())
	}
}

// sidecar is a template with a native sidecar.
func sidecar(image string) *corev1.PodTemplateSpec {
	t := template(container("c1", "app:1"))
	t.Spec.InitContainers = []corev1.Container{container("proxy", image, func(c *corev1.Container) {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	})}
	return t
}

func images(list ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

func values(list ...string) map[string]*string {
	m := map[string]*string{}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = &list[i+1]
	}
	return m
}

// tidy is a change by field, without what is empty.
func tidy(c inplace.Change) string {
	var b strings.Builder
	b.WriteString("{")
	add := func(name string, n int, v any) {
		if n > 0 {
			b.WriteString(name + ":" + jsonOf(v) + "\n")
		}
	}
	add("images", len(c.Images), c.Images)
	add("resources", len(c.Resources), c.Resources)
	add("refs", len(c.RefMetadata), c.RefMetadata)
	add("env", len(c.Env), c.Env)
	add("labels", len(c.Metadata.Labels), c.Metadata.Labels)
	add("annotations", len(c.Metadata.Annotations), c.Metadata.Annotations)
	add("add", len(c.Metadata.AddFinalizers), c.Metadata.AddFinalizers)
	add("remove", len(c.Metadata.RemoveFinalizers), c.Metadata.RemoveFinalizers)
	b.WriteString("}")
	return b.String()
}

package imagepull_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/imagepull"
)

func template(images ...string) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	for _, image := range images {
		name, image, _ := strings.Cut(image, "=")
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: name, Image: image})
	}
	return t
}

func rollout(from, to *corev1.PodTemplateSpec) imagepull.Rollout {
	return imagepull.Rollout{
		Namespace: "shop", From: from, To: to,
		Revision: &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Name: "web-6d5f", Labels: map[string]string{kruise.RevisionHashLabelKey: "6d5f"},
		}},
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
}

func TestPreDownload(t *testing.T) {
	cases := map[string]struct {
		why      string
		from, to *corev1.PodTemplateSpec
		want     []string
	}{
		"nothing new": {"", template("web=web:1"), template("web=web:1"), nil},
		"one image": {
			why:  "the other container keeps its own",
			from: template("web=web:1", "log=log:1"),
			to:   template("web=web:2", "log=log:1"),
			want: []string{"web-6d5f-web web:2"},
		},
		"a new container": {
			why:  "its image is on no node",
			from: template("web=web:1"),
			to:   template("web=web:1", "log=log:1"),
			want: []string{"web-6d5f-log log:1"},
		},
		"same image twice": {
			why:  "a node pulls it once",
			from: template("a=x:1", "b=x:1"),
			to:   template("a=x:2", "b=x:2"),
			want: []string{"web-6d5f-a x:2"},
		},
		"order is no matter": {"containers are matched by name", template("a=a:1", "b=b:1"), template("b=b:1", "a=a:1"), nil},
		"images swapped": {
			why:  "told by container, as the reference does",
			from: template("a=x:1", "b=y:1"),
			to:   template("a=y:1", "b=x:1"),
			want: []string{"web-6d5f-a y:1", "web-6d5f-b x:1"},
		},
		"no image":      {"nothing to pull", template("a=x:1"), template("a="), nil},
		"no containers": {"", template(), template(), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, job := range imagepull.PreDownload(rollout(c.from, c.to)) {
				got = append(got, job.Name+" "+job.Spec.Image)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestJob(t *testing.T) {
	to := template("web=web:2")
	to.Labels, to.Annotations = map[string]string{"app": "web"}, map[string]string{"team": "shop"}
	to.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	r := rollout(template("web=web:1"), to)
	r.Owner = metav1.OwnerReference{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "1", Controller: ptr.To(true),
	}
	before := []any{r.From.DeepCopy(), r.To.DeepCopy(), r.Selector.DeepCopy(), r.Revision.DeepCopy()}
	labels := map[string]string{"app": "web", kruise.RevisionHashLabelKey: "6d5f"}
	want := &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-6d5f-web", Labels: labels, OwnerReferences: []metav1.OwnerReference{r.Owner},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: "web:2", ImagePullJobTemplate: v1beta1.ImagePullJobTemplate{
			PullSecrets: []string{"registry"},
			PodSelector: &v1beta1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{
				MatchLabels: map[string]string{"app": "web"},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "controller-revision-hash", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web-6d5f", "6d5f"}},
				},
			}},
			Parallelism:      ptr.To(intstr.FromInt32(1)),
			PullPolicy:       &v1beta1.PullPolicy{TimeoutSeconds: ptr.To[int32](300), BackoffLimit: ptr.To[int32](1)},
			CompletionPolicy: v1beta1.CompletionPolicy{Type: v1beta1.Always, TTLSecondsAfterFinished: ptr.To[int32](600)},
			SandboxConfig:    &v1beta1.SandboxConfig{Labels: labels, Annotations: map[string]string{"team": "shop"}},
		}},
	}
	got := imagepull.PreDownload(r)
	if diff := cmp.Diff([]*v1beta1.ImagePullJob{want}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got[0].Labels["x"], got[0].Spec.SandboxConfig.Annotations["x"] = "y", "y"
	got[0].Spec.PodSelector.MatchLabels["x"] = "y"
	if diff := cmp.Diff(before, []any{r.From, r.To, r.Selector, r.Revision}); diff != "" {
		t.Errorf("the jobs share memory with the rollout:\n%s", diff)
	}
}

// The labels and annotations of a template may be longer than a job's may be.
func TestLongAnnotations(t *testing.T) {
	to := template("web=web:2")
	to.Annotations = map[string]string{"a": strings.Repeat("x", 20000)}
	if jobs := imagepull.PreDownload(rollout(template("web=web:1"), to)); len(jobs) != 1 ||
		jobs[0].Spec.SandboxConfig != nil {
		t.Errorf("%d jobs", len(jobs))
	}
}

func TestParallelism(t *testing.T) {
	cases := map[string]struct {
		why  string
		in   *intstr.IntOrString
		want int32
	}{
		"none":          {"one node at a time", nil, 1},
		"zero":          {"paused", ptr.To(intstr.FromInt32(0)), 0},
		"a number":      {"", ptr.To(intstr.FromInt32(7)), 7},
		"a text":        {"annotations hold texts", ptr.To(intstr.FromString("7")), 7},
		"a percentage":  {"of what is not known", ptr.To(intstr.FromString("50%")), 1},
		"no number":     {"stored by an older webhook", ptr.To(intstr.FromString("many")), 1},
		"negative":      {"", ptr.To(intstr.FromInt32(-3)), 1},
		"beyond 32 bit": {"", ptr.To(intstr.FromString("99999999999")), 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := rollout(template("web=web:1"), template("web=web:2"))
			r.Parallelism = c.in
			if got := imagepull.PreDownload(r)[0].Spec.Parallelism.IntVal; got != c.want {
				t.Errorf("%s: %d, want %d", c.why, got, c.want)
			}
		})
	}
}

// Names of revisions and containers are long enough to make a name of a job that no other job takes.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 62)
	r := rollout(template(), template(long+"a=x:1", long+"b=x:2"))
	r.Revision.Name = strings.Repeat("w", 234)
	seen := map[string]bool{}
	for _, job := range imagepull.PreDownload(r) {
		seen[job.Name] = true
		if faults := validation.IsDNS1123Subdomain(job.Name); len(faults) > 0 {
			t.Errorf("%s: %v", job.Name, faults)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d names for two jobs: %v", len(seen), seen)
	}
}

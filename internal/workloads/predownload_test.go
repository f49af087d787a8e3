package workloads_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
)

func template(image, level string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "app", Image: image, Env: []corev1.EnvVar{{Name: "LEVEL", Value: level}}},
	}}}
}

func older(t *testing.T, hash string, of *corev1.PodTemplateSpec) *appsv1.ControllerRevision {
	t.Helper()
	data, err := revision.Encode(of)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash, Labels: map[string]string{kruise.RevisionHashLabelKey: hash}},
		Data:       runtime.RawExtension{Raw: data},
	}
}

func TestPlan(t *testing.T) {
	job := func(hash string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "job-" + hash, Labels: map[string]string{kruise.RevisionHashLabelKey: hash},
		}}
	}
	cases := map[string]struct {
		why          string
		change       func(*workloads.Rollout)
		create, ends int
		label        string
	}{
		"image": {"nodes pull the new image", func(*workloads.Rollout) {}, 1, 0, v1beta1.ImagePreDownloadCreatedKey},
		"few": {
			why:    "three pods are updated before a job has begun",
			change: func(r *workloads.Rollout) { r.Replicas = 3 },
			label:  v1beta1.ImagePreDownloadIgnoredKey,
		},
		"at once": {
			why:    "no pod waits for another one",
			change: func(r *workloads.Rollout) { r.AtOnce = true },
			label:  v1beta1.ImagePreDownloadIgnoredKey,
		},
		"recreates": {
			why:    "a new pod pulls anyway",
			change: func(r *workloads.Rollout) { r.Recreates = true },
			label:  v1beta1.ImagePreDownloadIgnoredKey,
		},
		"blocked": {
			why:    "so does one that cannot be updated in place",
			change: func(r *workloads.Rollout) { r.To = template("web:2", "debug") },
			label:  v1beta1.ImagePreDownloadIgnoredKey,
		},
		"always": {"pods that are recreated find the image, also few of them", func(r *workloads.Rollout) {
			r.Always, r.Recreates, r.Replicas, r.To = true, true, 1, template("web:2", "debug")
		}, 1, 0, v1beta1.ImagePreDownloadCreatedKey},
		"always, at once": {
			why:    "no pod waits for another one",
			change: func(r *workloads.Rollout) { r.Always, r.AtOnce = true, true },
			label:  v1beta1.ImagePreDownloadIgnoredKey,
		},
		"older": {"pods of an older revision lack an image that others have", func(r *workloads.Rollout) {
			r.To.Spec.Containers = append(r.To.Spec.Containers, corev1.Container{Name: "log", Image: "log:1"})
			r.Current, r.Older, r.Always = nil, []*appsv1.ControllerRevision{older(t, "1", r.To), r.Current}, true
		}, 2, 0, v1beta1.ImagePreDownloadCreatedKey},
		"decided": {"the decision is made once", func(r *workloads.Rollout) {
			r.Update.Labels[v1beta1.ImagePreDownloadCreatedKey] = "true"
		}, 0, 0, ""},
		"early": {"some updated pods must be ready first", func(r *workloads.Rollout) {
			r.Strategy.ImagePreDownloadMinUpdatedReadyPods = ptr.To[int32](2)
			r.UpdatedReady = 1
		}, 0, 0, ""},
		"over": {
			why:    "without a rollout all jobs end",
			change: func(r *workloads.Rollout) { r.Over, r.Jobs = true, []*metav1.PartialObjectMetadata{job("2")} },
			ends:   1,
		},
		"other revision": {
			why:    "jobs of other revisions end",
			change: func(r *workloads.Rollout) { r.Jobs = []*metav1.PartialObjectMetadata{job("0"), job("2")} },
			create: 1,
			ends:   1,
			label:  v1beta1.ImagePreDownloadCreatedKey,
		},
		"not stored": {
			why: "without the revision nothing is decided", change: func(r *workloads.Rollout) { r.Update = nil },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := workloads.Rollout{
				Namespace: "shop",
				Replicas:  5,
				Selector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Current:   older(t, "1", template("web:1", "info")),
				Update:    older(t, "2", template("web:2", "info")),
				To:        template("web:2", "info"),
			}
			c.change(&r)
			got, err := workloads.PlanPreDownload(r)
			if err != nil || len(got.Create) != c.create || len(got.End) != c.ends || got.Label != c.label {
				t.Errorf("%s: %d jobs to create, %d to end, label %q, %v", c.why, len(got.Create), len(got.End), got.Label, err)
			}
		})
	}
	broken := older(t, "1", template("web:1", "info"))
	broken.Data.Raw = []byte("{")
	if _, err := workloads.PlanPreDownload(workloads.Rollout{
		Replicas: 5, Current: broken, Update: older(t, "2", template("web:2", "info")),
	}); err == nil {
		t.Error("a revision that cannot be read is no error")
	}
}

package statefulset

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// Images are pulled ahead of an update in place that pods wait for, once.
func TestPreDownload(t *testing.T) {
	annotate := func(key, value string) func(*v1beta1.StatefulSet) {
		return func(s *v1beta1.StatefulSet) { s.Annotations = map[string]string{key: value} }
	}
	updatedReady := func(n int32) func(*v1beta1.StatefulSet) {
		return func(s *v1beta1.StatefulSet) { s.Status.UpdatedReadyReplicas = n }
	}
	cases := map[string]struct {
		why   string
		set   changes
		label string
		jobs  int
	}{
		"in place":  {"each container has a job", changes{inPlace}, "apps.kruise.io/pre-predownload-created", 1},
		"recreate":  {"nodes pull the image with the pod", nil, "apps.kruise.io/image-predownload-ignored", 0},
		"on delete": {"no pod is updated", changes{onDelete}, "apps.kruise.io/image-predownload-ignored", 0},
		"few pods": {
			why:   "they are updated before a job has begun",
			set:   changes{inPlace, func(s *v1beta1.StatefulSet) { s.Spec.Replicas = ptr.To(int32(3)) }},
			label: "apps.kruise.io/image-predownload-ignored",
		},
		"all at once": {
			why:   "no pod waits",
			set:   changes{inPlace, parallel, maxUnavailable("100%")},
			label: "apps.kruise.io/image-predownload-ignored",
		},
		"partition": {
			why:   "some pods wait",
			set:   changes{inPlace, parallel, maxUnavailable("100%"), partition(1)},
			label: "apps.kruise.io/pre-predownload-created",
			jobs:  1,
		},
		"not yet": {
			why: "fewer pods are updated than the annotation asks for",
			set: changes{inPlace, annotate(kruise.ImagePreDownloadMinUpdatedReadyPodsKey, "25%")},
		},
		"enough by now": {
			why:   "25% of five are two, rounded up",
			set:   changes{inPlace, annotate(kruise.ImagePreDownloadMinUpdatedReadyPodsKey, "25%"), updatedReady(2)},
			label: "apps.kruise.io/pre-predownload-created",
			jobs:  1,
		},
		"other volumes": {
			why:   "the change is not possible in place",
			set:   changes{inPlace, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Hostname = "x" }},
			label: "apps.kruise.io/image-predownload-ignored",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, 5, append(changes{withImage("web:2")}, c.set...)...)
			o.pods(several("web:1", 0, 1, 2, 3, 4)...)
			o.set.Status.UpdateRevision = o.revision("web:2")
			s, p := o.plan()
			if c.why == "the change is not possible in place" {
				s.Revisions = append(s.Revisions, p.Store.Newest())
			}
			result, err := workloads.PlanPreDownload(p.preDownload(s, o.options))
			if err != nil {
				t.Fatal(err)
			}
			if result.Label != c.label || len(result.Create) != c.jobs {
				t.Errorf("%s: label %q and %d jobs, want %q and %d", c.why, result.Label, len(result.Create), c.label, c.jobs)
			}
		})
	}
}

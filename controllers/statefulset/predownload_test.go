package statefulset

import (
	"testing"

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
		"partition": {
			why:   "some pods wait",
			set:   changes{inPlace, parallel, maxUnavailable("100%"), partition(1)},
			label: "apps.kruise.io/pre-predownload-created",
			jobs:  1,
		},
		"all at once": {
			"no pod waits", changes{inPlace, parallel, maxUnavailable("100%")}, "apps.kruise.io/image-predownload-ignored", 0,
		},
		"enough by now": {
			why:   "25% of five are two, rounded up",
			set:   changes{inPlace, annotate(kruise.ImagePreDownloadMinUpdatedReadyPodsKey, "25%"), updatedReady(2)},
			label: "apps.kruise.io/pre-predownload-created",
			jobs:  1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, 5, append(changes{withImage("web:2")}, c.set...)...)
			o.pods(parse("0:1 1:1 2:1 3:1 4:1")...)
			o.set.Status.UpdateRevision = o.revision("web:2")
			s, p := o.plan()
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

package imagepulljob

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// statusWrite returns the write of a status; nil where it is the same.
func statusWrite(jobs stored.Kind, job *pullJob, status v1beta1.ImagePullJobStatus) (*write.Write, error) {
	fresh := *job
	fresh.Status = status
	return stored.WriteStatus(jobs, job, &fresh, map[string]any{ // the schema requires one, and lists print all
		"desired": status.Desired, "active": status.Active, "succeeded": status.Succeeded, "failed": status.Failed,
	})
}

package imagepulljob

import "github.com/kruisekit/kruisekit/api/apps/v1beta1"

// counters are the fields of a status that are always written: the schema requires one, and lists print all.
func counters(s *v1beta1.ImagePullJobStatus) map[string]any {
	return map[string]any{"desired": s.Desired, "active": s.Active, "succeeded": s.Succeeded, "failed": s.Failed}
}

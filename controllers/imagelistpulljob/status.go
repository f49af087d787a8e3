package imagelistpulljob

import "github.com/kruisekit/kruisekit/api/apps/v1beta1"

// counters are the fields of a status that are always written: the schema requires them.
func counters(s *v1beta1.ImageListPullJobStatus) map[string]any {
	return map[string]any{
		"desired": s.Desired, "active": s.Active, "completed": s.Completed, "succeeded": s.Succeeded,
	}
}

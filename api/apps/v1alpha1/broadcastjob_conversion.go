package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo converts j to v1beta1.
func (j *BroadcastJob) ConvertTo(hub *v1beta1.BroadcastJob) error {
	return roundtrip.Up(j, hub, broadcastJobUp, broadcastJobDown)
}

// ConvertFrom converts hub to v1alpha1.
func (j *BroadcastJob) ConvertFrom(hub *v1beta1.BroadcastJob) error {
	return roundtrip.Down(hub, j, broadcastJobUp, broadcastJobDown)
}

// broadcastJobUp copies all fields: both versions have the same spec and status. roundtrip.Up passes a clone of j, so
// that hub may share memory with it.
func broadcastJobUp(j *BroadcastJob, hub *v1beta1.BroadcastJob) {
	hub.ObjectMeta = j.ObjectMeta
	hub.Spec = j.Spec
	hub.Status = j.Status
}

func broadcastJobDown(hub *v1beta1.BroadcastJob, j *BroadcastJob) {
	j.ObjectMeta = hub.ObjectMeta
	j.Spec = hub.Spec
	j.Status = hub.Status
}

package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with j.
func (j *ImageListPullJob) ConvertTo(hub *v1beta1.ImageListPullJob) error {
	return roundtrip.Up(j, hub, imageListPullJobUp, imageListPullJobDown)
}

// ConvertFrom fills j with hub.
func (j *ImageListPullJob) ConvertFrom(hub *v1beta1.ImageListPullJob) error {
	return roundtrip.Down(hub, j, imageListPullJobUp, imageListPullJobDown)
}

func imageListPullJobUp(j *ImageListPullJob, hub *v1beta1.ImageListPullJob) {
	hub.ObjectMeta = j.ObjectMeta
	hub.Spec = j.Spec
	hub.Status = j.Status
}

func imageListPullJobDown(hub *v1beta1.ImageListPullJob, j *ImageListPullJob) {
	j.ObjectMeta = hub.ObjectMeta
	j.Spec = hub.Spec
	j.Status = hub.Status
}

package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with j.
func (j *ImagePullJob) ConvertTo(hub *v1beta1.ImagePullJob) error {
	return roundtrip.Up(j, hub, imagePullJobUp, imagePullJobDown)
}

// ConvertFrom fills j with hub.
func (j *ImagePullJob) ConvertFrom(hub *v1beta1.ImagePullJob) error {
	return roundtrip.Down(hub, j, imagePullJobUp, imagePullJobDown)
}

func imagePullJobUp(j *ImagePullJob, hub *v1beta1.ImagePullJob) {
	hub.ObjectMeta = j.ObjectMeta
	hub.Spec = j.Spec
	hub.Status = j.Status
}

func imagePullJobDown(hub *v1beta1.ImagePullJob, j *ImagePullJob) {
	j.ObjectMeta = hub.ObjectMeta
	j.Spec = hub.Spec
	j.Status = hub.Status
}

package imagelistpulljob

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/imagepull"
)

// Reasons of events. The first two are the reference's.
const (
	reasonCreated      = "Successful create ImagePullJob"
	reasonDeleted      = "Successful delete ImagePullJob"
	reasonFailedCreate = "FailedCreate"
	reasonInvalidSpec  = "InvalidSpec"
)

// misfits are the images that are passed over, and a sandboxConfig that is left out, and why.
func (a *act) misfits() string {
	var all []string
	for _, n := range a.plan.Notes {
		if n.Code == imagepull.NoteBadImage || n.Code == imagepull.NoteSandbox {
			all = append(all, n.Text)
		}
	}
	return strings.Join(all, "; ")
}

// emitInvalid reports what is wrong with the spec; once, as long as it is the same. Empty is nothing.
func (a *act) emitInvalid(text string) {
	if a.emitted.Changed(a.key(), text) {
		a.api.Event(a.list, corev1.EventTypeWarning, reasonInvalidSpec, text)
	}
}

package cloneset_test

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// The deadline counts from the start of a rollout, and again from the next revision. A rollout past its deadline stays
// so until it is complete, paused or replaced. The reference counts from the last change of the reason instead.
func TestDeadlineStartsWithTheRollout(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
	m.Advance(20 * time.Minute)
	m.stays(set, reason("CloneSetAvailable"))
	m.change(set, image("web:broken"))
	m.eventually(set, all(reason("CloneSetUpdated"), images(map[string]int{"web:broken": 1})))
	m.Advance(9 * time.Minute)
	m.stays(set, reason("CloneSetUpdated"))
	m.Advance(2 * time.Minute)
	m.eventually(set, reason("ProgressDeadlineExceeded"))
	m.scale(set, 2)
	m.eventually(set, counts(2, 0))
	m.stays(set, reason("ProgressDeadlineExceeded"))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "other:broken" })
	m.eventually(set, reason("CloneSetUpdated"))
	m.Advance(11 * time.Minute)
	m.eventually(set, reason("ProgressDeadlineExceeded"))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = true })
	m.eventually(set, reason("CloneSetPaused"))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = false })
	m.eventually(set, reason("CloneSetUpdated"))
	m.change(set, image("web:3"))
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
}

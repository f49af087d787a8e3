package sidecarset_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// TestRefused: a pod whose update is refused keeps no other from its own.
func TestRefused(t *testing.T) {
	refuse := true
	m := newModel(t, sidecarset.Options{}, func(c client.WithWatch) client.WithWatch {
		return podbench.Writes(c, func(name string, write func() error) error {
			if name == "patch/pod-0" && refuse {
				return apierrors.NewForbidden(corev1.Resource("pods"), "pod-0", errors.New("a webhook says no"))
			}
			return write()
		})
	})
	set := m.create("mesh")
	m.fleet(3, set)
	m.counted(set, 3, 3, 3, 3)
	m.change(set, image("mesh:2"))
	m.counted(set, 3, 2, 3, 2)
	m.runs("mesh=mesh:1", "mesh=mesh:2", "mesh=mesh:2")
	if n := m.events(set, "FailedUpdate"); n != 1 {
		t.Errorf("%d events", n)
	}
	refuse = false
	m.change(set, image("mesh:3"))
	m.counted(set, 3, 3, 3, 3)
}

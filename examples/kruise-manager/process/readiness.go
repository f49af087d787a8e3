package process

import (
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kruisekit/kruisekit/examples/reference/readiness"
)

// explained is a manager that logs why a check of readiness fails, when the reason changes.
type explained struct {
	ctrl.Manager

	logger logr.Logger
}

// AddReadyzCheck adds the logged check.
func (m explained) AddReadyzCheck(name string, check healthz.Checker) error {
	check = readiness.Logged(name, check, m.logger, clock.RealClock{})
	return m.Manager.AddReadyzCheck(name, check)
}

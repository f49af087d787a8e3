package process

import (
	"github.com/kruisekit/kruisekit/daemon"
	"github.com/kruisekit/kruisekit/examples/kruise-daemon/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
)

// parts are what flags and gates become for the parts of the daemon.
func parts(o options.Options) daemon.Options {
	return daemon.Options{WithoutPods: !o.Gates.On(gates.DaemonWatchingPod)}
}

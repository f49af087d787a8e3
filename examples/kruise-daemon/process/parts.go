package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/daemon"
	"github.com/kruisekit/kruisekit/daemon/containermeta"
	"github.com/kruisekit/kruisekit/daemon/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/credentials"
	"github.com/kruisekit/kruisekit/daemon/imagepull"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
)

// parts are what flags and gates become for the parts of the daemon.
func (p process) parts(ctx context.Context) (daemon.Options, error) {
	keyring, err := p.keyring(ctx)
	if err != nil {
		return daemon.Options{}, err
	}
	return daemon.Options{
		LeftOut: &daemon.LeftOut{}, Registerer: p.metrics,
		WithoutPods: !p.Gates.On(gates.DaemonWatchingPod),
		ImagePull: imagepull.Options{
			Keyring: keyring, MaxPulls: p.Pull.Workers, MinFreePercent: p.Pull.MinFreePercent, Registerer: p.metrics,
		},
		ContainerRestart: containerrestart.Options{Registerer: p.metrics},
		WithoutProbes:    !p.Gates.On(gates.PodProbeMarkerGate),
		ContainerMeta: containermeta.Options{
			NoEnv: !p.Gates.On(gates.InPlaceUpdateEnvFromMetadata), Registerer: p.metrics,
		},
	}, nil
}

// keyring is what the node itself has. Plugins that are not configured right are no reason not to do the rest.
func (p process) keyring(ctx context.Context) (*credentials.Keyring, error) {
	o := credentials.Options{
		Config: p.Pull.PluginConfig, Plugins: p.Pull.PluginDirectory, DockerDirs: dockerDirs(), Env: os.Environ(),
	}
	keyring, err := credentials.Open(o)
	if err != nil && o.Config != "" {
		log.FromContext(ctx).Error(err, "Going on without credential providers", "file", o.Config)
		o.Config = ""
		keyring, err = credentials.Open(o)
	}
	if err != nil {
		return nil, fmt.Errorf("open credentials: %w", err)
	}
	return keyring, nil
}

// dockerDirs are where kubelets look for docker's configuration, in the file system of the process.
func dockerDirs() []string {
	dirs := []string{"/.docker", "/"}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		dirs = append([]string{filepath.Join(home, ".docker"), home}, dirs...)
	}
	return dirs
}

// registrations are the metrics of one daemon, of which a process may have several one after the other.
type registrations struct {
	prometheus.Registerer
	own []prometheus.Collector
}

// Register registers one.
func (r *registrations) Register(c prometheus.Collector) error {
	if err := r.Registerer.Register(c); err != nil {
		return err
	}
	r.own = append(r.own, c)
	return nil
}

// end takes all of them back.
func (r *registrations) end() {
	for _, c := range r.own {
		r.Unregister(c)
	}
}

package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/internal/pki"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
)

const (
	// startup bounds the start of one program, on a machine that compiles at the same time.
	startup = 2 * time.Minute
	// grace is what a program gets to end in peace. Nothing of its state is kept, so this is about clean logs only.
	grace = 5 * time.Second
	// attempts to find free ports: another process may take one between the choice and the use.
	attempts = 3
	// services is the range of service addresses.
	services = "10.96.0.0/16"
	// firstService is what pods know as kubernetes.default.
	firstService = "10.96.0.1"
)

// Config says what to run.
type Config struct {
	// Dir holds certificates, data, logs and records. It must be empty or not exist.
	Dir string
	// Programs are the paths of the programs by name.
	Programs map[string]string
	// Address of the API server. By default 127.0.0.1.
	Address string
	// Port of the API server. By default a free one.
	Port int
	// Controllers starts kube-controller-manager and kube-scheduler too. Without them no service accounts are created, so
	// that pods are then admitted without one.
	Controllers bool
	// Workloads starts kube-controllers instead, the few controllers that workloads need, and no scheduler.
	Workloads bool
	// Bound programs die with this process. Others are found again by their records.
	Bound bool
	// Env is added to the environment of the programs.
	Env []string
	// APIServerFlags and ControllerFlags are added to the command lines of kube-apiserver, and of kube-controller-manager
	// or kube-controllers.
	APIServerFlags, ControllerFlags []string
}

// Plane is a running control plane.
type Plane struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string
	// Server is the URL of the API server, Etcd that of etcd.
	Server, Etcd string
	// Authority signs further certificates: for kubelets, say.
	Authority *pki.Authority

	config    Config
	processes []*process.Process
	done      chan struct{}
}

// Start brings the control plane up and waits until the API server is ready. When it fails, nothing is left running.
func Start(ctx context.Context, config Config) (*Plane, error) {
	if config.Address == "" {
		config.Address = "127.0.0.1"
	}
	for attempt := 1; ; attempt++ {
		p, err := start(ctx, config)
		if err == nil {
			return p, nil
		}
		if attempt == attempts || !strings.Contains(err.Error(), "address already in use") {
			return nil, err
		}
	}
}

func start(ctx context.Context, config Config) (p *Plane, err error) {
	p = &Plane{config: config, done: make(chan struct{}), Kubeconfig: filepath.Join(config.Dir, "kubeconfig")}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	if p.config.Port == 0 {
		if p.config.Port, err = FreePort(); err != nil {
			return p, err
		}
	}
	p.Server = "https://" + net.JoinHostPort(config.Address, strconv.Itoa(p.config.Port))
	if p.Authority, err = pki.NewAuthority(filepath.Join(config.Dir, "pki")); err != nil {
		return p, err
	}
	admin, err := p.Authority.Client("admin", "admin", "system:masters")
	if err != nil {
		return p, err
	}
	if p.Etcd, err = p.startEtcd(ctx); err != nil {
		return p, err
	}
	if err := os.WriteFile(p.Kubeconfig, p.Authority.Kubeconfig(p.Server, admin), 0o600); err != nil {
		return p, fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := p.startAPIServer(ctx, p.Etcd, admin); err != nil {
		return p, err
	}
	if err := p.startControllers(); err != nil {
		return p, err
	}
	p.watch()
	return p, nil
}

// Stop ends all programs, the last started first. The directory stays, for its logs.
func (p *Plane) Stop() error {
	var failures []error
	for _, one := range slices.Backward(p.processes) {
		failures = append(failures, one.Stop(grace))
	}
	p.processes = nil
	return errors.Join(failures...)
}

// Done is closed when any of the programs has ended.
func (p *Plane) Done() <-chan struct{} { return p.done }

func (p *Plane) watch() {
	ended := make(chan struct{}, len(p.processes))
	for _, one := range p.processes {
		go func() {
			<-one.Done()
			ended <- struct{}{}
		}()
	}
	go func() {
		<-ended
		close(p.done)
	}()
}

// RecordDir is where the plane in dir has its logs, and the records of its programs for the process that stops them
// after the process that started them.
func RecordDir(dir string) string { return filepath.Join(dir, "run") }

// run starts one program of the plane.
func (p *Plane) run(name string, args ...string) (*process.Process, error) {
	path, ok := p.config.Programs[name]
	if !ok {
		return nil, fmt.Errorf("start %s: not among the programs", name)
	}
	started, err := process.Start(process.Spec{
		Name: name, Path: path, Args: args, Env: p.config.Env, Bound: p.config.Bound, Dir: RecordDir(p.config.Dir),
	})
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	p.processes = append(p.processes, started)
	return started, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"
)

const (
	// webhookPort of the first replica; the second has the next one. Probes, metrics and profiles follow.
	webhookPort = 29876
	portsEach   = 10
	// gates turn on what is off by default, so that all kinds run.
	gates = "ImagePullJobGate=true,ResourceDistributionGate=true"
)

// replica is a process of the manager.
type replica struct {
	name    string
	process *exec.Cmd
	ended   chan struct{}
	base    int
}

// manage starts another replica of the manager, with the environment that config/manager gives it, and returns when it
// is ready.
func (e *env) manage(ctx context.Context, flags ...string) (*replica, error) {
	running := 0
	for _, r := range e.replicas {
		if !r.over() {
			running++
		}
	}
	r := &replica{
		name: fmt.Sprintf("manager-%d", len(e.replicas)), base: webhookPort + portsEach*running, ended: make(chan struct{}),
	}
	local := func(port int) string { return "127.0.0.1:" + strconv.Itoa(r.base+port) }
	r.process = exec.CommandContext(ctx, e.programs["kruise-manager"], append([]string{
		"--kubeconfig=" + e.cluster.Plane.Kubeconfig, "-v=2", "--feature-gates=" + gates,
		"--health-probe-addr=" + local(1), "--metrics-addr=" + local(2),
		"--enable-pprof", "--pprof-addr=" + local(3),
	}, flags...)...)
	r.process.Env = append(os.Environ(),
		"POD_NAMESPACE="+system, "WEBHOOK_PORT="+strconv.Itoa(r.base), "GOMEMLIMIT=900MiB")
	r.process.Cancel = func() error { return r.process.Process.Signal(syscall.SIGTERM) }
	r.process.WaitDelay = 30 * time.Second
	if err := e.launch(r.process, r.name); err != nil {
		return nil, err
	}
	go func() {
		_ = r.process.Wait()
		close(r.ended)
	}()
	e.replicas = append(e.replicas, r)
	return r, r.until(ctx, func(ctx context.Context) error {
		_, err := r.get(ctx, 1, "/readyz")
		return err
	})
}

// launch starts a process with a log of its own.
func (e *env) launch(process *exec.Cmd, name string) error {
	log, err := os.Create(filepath.Join(e.dir, name+".log"))
	if err != nil {
		return fmt.Errorf("make log: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

// settled starts a replica and waits until it has written what a new cluster lacks, such as NodeImages.
func (e *env) settled(ctx context.Context) (*replica, error) {
	r, err := e.manage(ctx, "--nodeimage-creation-delay=1s")
	if err != nil {
		return nil, err
	}
	return r, r.idle(ctx, 5*time.Second)
}

// until polls a condition that needs the replica to run.
func (r *replica) until(ctx context.Context, check func(context.Context) error) error {
	return poll(ctx, 5*time.Minute, func(ctx context.Context) error {
		if r.over() {
			return errEnded
		}
		return check(ctx)
	})
}

func (r *replica) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

var errEnded = errors.New("the manager has ended; its log says why")

// get reads what a port of the replica serves.
func (r *replica) get(ctx context.Context, port int, path string) ([]byte, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d%s", r.base+port, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask manager: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask manager: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

// profile writes a profile of the replica: "profile?seconds=10" of its CPU, "heap" of its memory.
func (r *replica) profile(ctx context.Context, of, file string) error {
	body, err := r.get(ctx, 3, "/debug/pprof/"+of)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// stop ends the replica and waits for its end.
func (r *replica) stop() error {
	if r.over() {
		return nil
	}
	if err := r.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop manager: %w", err)
	}
	late, cancel := context.WithTimeout(context.Background(), r.process.WaitDelay)
	defer cancel()
	select {
	case <-r.ended:
	case <-late.Done():
		_ = r.process.Process.Kill()
		<-r.ended
	}
	return nil
}

// poll calls check until it succeeds, at most for as long as patience lasts.
func poll(ctx context.Context, patience time.Duration, check func(context.Context) error) error {
	var last error
	again := func(ctx context.Context) (bool, error) {
		if last = check(ctx); errors.Is(last, errEnded) {
			return false, last
		}
		return last == nil, nil
	}
	if err := utilwait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, again); err != nil {
		return fmt.Errorf("%w; last: %w", err, last)
	}
	return nil
}

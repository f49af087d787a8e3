package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// poll is how often the end of a process that is not our child is looked for.
const poll = 20 * time.Millisecond

// Spec says what to run.
type Spec struct {
	Name string // of the log and of the record
	Path string
	Args []string
	Env  []string // added to the environment of this process
	Dir  string   // holds <Name>.log and <Name>.json

	// Bound programs are killed by the kernel when this process ends.
	Bound bool
	// Namespaces are clone(2) flags for new namespaces.
	Namespaces uintptr
}

// Process is a running program that this process started.
type Process struct {
	Record
	record string
	log    string
	done   chan struct{}
	err    error
}

// Start runs the program and records it in Spec.Dir.
func Start(spec Spec) (*Process, error) {
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{
		record: filepath.Join(spec.Dir, spec.Name+recordSuffix),
		log:    filepath.Join(spec.Dir, spec.Name+".log"),
		done:   make(chan struct{}),
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(spec.Path, spec.Args...) //nolint:noctx // it outlives the caller's context; Stop ends it
	// These programs live for minutes, on a machine that compiles tests as well: memory is cheaper than collections.
	cmd.Env = append([]string{"GOGC=400"}, os.Environ()...)
	cmd.Env = append(cmd.Env, spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(spec)

	started := make(chan error)
	go func() {
		// The kernel sends the death signal of a bound child when the starting thread ends: keep that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p.Record = recordOf(spec.Name, cmd.Process.Pid)
	if err := p.save(p.record); err != nil {
		_ = cmd.Process.Kill()
		<-p.done
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Log is the file that the program writes to.
func (p *Process) Log() string { return p.log }

// Failure describes a program that has ended when it should not have, with the end of its log. Call it after Done.
func (p *Process) Failure() error {
	return fmt.Errorf("%s ended: %w\n%s", p.Name, errors.Join(p.err, errEnded), tail(p.log))
}

var errEnded = errors.New("program is not running any more")

// Stop asks the program to end, kills it when it has not after grace, and waits for its end.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Record.Stop(grace); err != nil {
		return err
	}
	<-p.done
	return removeFile(p.record)
}

// Ready polls until check succeeds, and fails early when the program ends. The context needs a deadline.
func (p *Process) Ready(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.done:
			cancel(p.Failure())
		case <-ctx.Done():
		}
	}()
	if err := Poll(ctx, check); err != nil {
		return fmt.Errorf("wait for %s (log %s): %w", p.Name, p.log, err)
	}
	return nil
}

// Poll calls check until it succeeds or the context ends, whose cause and the last failure it then returns.
func Poll(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// tail returns the end of a log, for error messages.
func tail(path string) string {
	const size = 2048
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(content[max(0, len(content)-size):])
}

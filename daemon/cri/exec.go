package cri

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// DefaultMaxOutput is how much of each output of a command is kept where nothing else is said.
const DefaultMaxOutput = 10 << 10

// spareOutput is how much longer than what is kept an answer may be, in bytes.
const spareOutput = 1 << 20

// Command is one to run in a container.
type Command struct {
	// Args are the program and its arguments. No shell is involved.
	Args []string
	// Timeout after which the runtime kills it, rounded up to seconds. Zero is no limit but that of the context,
	// whose end may leave the command running.
	Timeout time.Duration
	// MaxOutput bounds how many bytes of each output are kept, DefaultMaxOutput by default. An answer of the runtime that
	// is more than 1 MiB longer is never read, so that commands of pods cannot exhaust the memory: Exec fails, though the
	// command ran.
	MaxOutput int
}

// Output is what a command left.
type Output struct {
	Stdout, Stderr []byte
	// Truncated says that MaxOutput has cut one of them.
	Truncated bool
	// ExitCode is not an error of Exec, whatever it is.
	ExitCode int32
}

// Exec runs a command in a running container and waits for its end. ErrExecTimeout says that it ran longer than it may;
// any other error, that it is unknown what became of it.
func (r *Runtime) Exec(ctx context.Context, id string, c Command) (Output, error) {
	if len(c.Args) == 0 || c.Timeout < 0 || c.MaxOutput < 0 {
		return Output{}, errors.New("exec: want a program, a timeout and a bound that are not negative")
	}
	seconds := wholeSeconds(c.Timeout)
	running := operation{
		verb: "run a command in container", object: id, command: true,
		more: time.Duration(seconds) * time.Second, endless: seconds == 0,
	}
	most := c.MaxOutput
	if most == 0 {
		most = DefaultMaxOutput
	}
	limit := grpc.MaxCallRecvMsgSize(min(most+spareOutput, maxMessage))
	got, err := call(ctx, r, running, func(ctx context.Context, o ...grpc.CallOption) (*criv1.ExecSyncResponse, error) {
		return r.runtime.ExecSync(ctx,
			&criv1.ExecSyncRequest{ContainerId: id, Cmd: c.Args, Timeout: seconds}, append(o, limit)...)
	})
	if err != nil {
		return Output{}, err
	}
	stdout, stderr := got.GetStdout(), got.GetStderr()
	return Output{
		Stdout: cut(stdout, most), Stderr: cut(stderr, most),
		Truncated: len(stdout) > most || len(stderr) > most, ExitCode: got.GetExitCode(),
	}, nil
}

// cut copies what it shortens, so that the rest is not kept in memory.
func cut(output []byte, most int) []byte {
	if len(output) <= most {
		return output
	}
	return append([]byte(nil), output[:most]...)
}

package cri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// exampleNode stands in for a node: a directory for sockets with a containerd, whose pod "42" has a container "web".
func exampleNode() (run string, end func()) {
	run, err := os.MkdirTemp("", "cri")
	if err != nil {
		panic(err)
	}
	f := &fake{
		containers: []*criv1.ContainerStatus{container("0f3c", "42", "web", 100), container("1a2b", "42", "web", 200)},
		exec: func(context.Context, *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
			return &criv1.ExecSyncResponse{Stdout: []byte("ready")}, nil
		},
		registry: func(_ context.Context, q *criv1.PullImageRequest) (string, error) {
			if q.Auth == nil {
				return "", status.Error(codes.Unauthenticated, "authentication required")
			}
			return "sha256:5a1c", nil
		},
	}
	f.containers[0].State = criv1.ContainerState_CONTAINER_EXITED
	path := filepath.Join(run, "containerd.sock")
	if err := f.serve(path); err != nil {
		panic(err)
	}
	return run, func() {
		f.stop(path)
		_ = os.RemoveAll(run)
	}
}

// Find the runtime of a node, and in it the containers of a pod.
func Example() {
	ctx := context.Background()
	run, end := exampleNode() // /run
	defer end()

	runtimes, err := cri.Detect(ctx, cri.Search{Root: run}, cri.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = runtimes.Close() }()
	runtime := runtimes.Default()
	containers, err := runtime.Containers(ctx, cri.Query{PodUID: "42", Name: "web"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range containers {
		fmt.Println(runtime.Name(), c.ID, c.State)
	}
	// Output:
	// containerd 1a2b Running
	// containerd 0f3c Exited
}

// exampleRuntime opens the runtime of exampleNode.
func exampleRuntime() (runtime *cri.Runtime, end func()) {
	run, endNode := exampleNode()
	runtime, err := cri.Open(context.Background(), filepath.Join(run, "containerd.sock"), cri.Options{})
	if err != nil {
		panic(err)
	}
	return runtime, func() {
		_ = runtime.Close()
		endNode()
	}
}

// Pull with the credentials that a registry takes.
func ExampleRuntime_Pull() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // the only limit
	defer cancel()
	runtime, end := exampleRuntime()
	defer end()

	for _, c := range []cri.Credentials{{}, {Username: "jane", Password: "..."}} {
		image, err := runtime.Pull(ctx, "registry.example.com/web:v1", c, cri.SandboxConfig{})
		if errors.Is(err, cri.ErrCredentials) {
			fmt.Println(c, "refused")
			continue
		}
		fmt.Println(c, image, err)
	}
	// Output:
	// anonymous refused
	// credentials of jane sha256:5a1c <nil>
}

// A command that exits with a code is no error; one that ran out of time is.
func ExampleRuntime_Exec() {
	ctx := context.Background()
	runtime, end := exampleRuntime()
	defer end()

	out, err := runtime.Exec(ctx, "1a2b", cri.Command{Args: []string{"/bin/check"}, Timeout: time.Second})
	switch {
	case errors.Is(err, cri.ErrExecTimeout):
		fmt.Println("failed: timed out")
	case err != nil:
		fmt.Println("not known:", err)
	default:
		fmt.Printf("exit code %d: %s\n", out.ExitCode, out.Stdout)
	}
	// Output: exit code 0: ready
}

// Let a container 30 seconds to end.
func ExampleRuntime_Stop() {
	runtime, end := exampleRuntime()
	defer end()

	fmt.Println(runtime.Stop(context.Background(), "1a2b", 30*time.Second))
	// Output: <nil>
}

// List again whenever the connection has been made again.
func ExampleRuntime_Connected() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	runtime, end := exampleRuntime()
	defer end()

	for ctx.Err() == nil {
		up, changed := runtime.Connected()
		if up {
			containers, err := runtime.Containers(ctx, cri.Query{})
			fmt.Println(len(containers), err)
			cancel() // in real life something else ends it
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	// Output: 2 <nil>
}

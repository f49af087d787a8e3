// Package critest is a container runtime in memory, behind a real socket, for tests of packages that call the package
// cri. It has the containers and images that a test adds, and counts its calls.
//
//	runtime := critest.Serve(t, filepath.Join(dir, "containerd.sock"))
//	runtime.Add(critest.Container{ID: "0f3c", PodUID: "42", Name: "web"})
//	...
//	runtime.Stop() // as one that is killed
//	runtime.Start()
package critest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// Container runs in a pod.
type Container struct {
	// ID of the container, without the name of the runtime.
	ID string
	// PodUID, PodName and PodNamespace are the pod's, Name is that of the container in it.
	PodUID, PodName, PodNamespace, Name string
	// Hash is what the kubelet makes of the container's spec.
	Hash uint64
}

// Runtime is a container runtime.
type Runtime struct {
	criv1.UnimplementedRuntimeServiceServer
	criv1.UnimplementedImageServiceServer

	t      testing.TB
	socket string

	mu         sync.Mutex
	server     *grpc.Server
	containers map[string]*criv1.ContainerStatus
	calls      map[string]int
	broken     map[string]bool
	answer     func(id string, command []string) (code int32, output string)
}

// Serve starts a runtime at a socket, until the end of the test.
func Serve(t testing.TB, socket string) *Runtime {
	t.Helper()
	r := &Runtime{
		t:          t,
		socket:     socket,
		containers: map[string]*criv1.ContainerStatus{},
		calls:      map[string]int{},
		broken:     map[string]bool{},
	}
	r.Start()
	t.Cleanup(r.Stop)
	return r
}

// Start serves again after Stop.
func (r *Runtime) Start() {
	r.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(r.t.Context(), "unix", r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(r.count))
	criv1.RegisterRuntimeServiceServer(server, r)
	criv1.RegisterImageServiceServer(server, r)
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

// Stop ends it as a runtime that is killed, and removes its socket. Its containers stay.
func (r *Runtime) Stop() {
	r.mu.Lock()
	server := r.server
	r.server = nil
	r.mu.Unlock()
	if server != nil {
		server.Stop()
		_ = os.Remove(r.socket)
	}
}

// Break has all calls of a method, such as ImageFsInfo, answered as by a runtime that does not have it.
func (r *Runtime) Break(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken[method] = true
}

// Add adds a container that runs.
func (r *Runtime) Add(c Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[c.ID] = &criv1.ContainerStatus{
		Id: c.ID, Metadata: &criv1.ContainerMetadata{Name: c.Name}, State: criv1.ContainerState_CONTAINER_RUNNING,
		CreatedAt: int64(len(r.containers) + 1), StartedAt: int64(len(r.containers) + 1),
		Labels: map[string]string{
			cri.LabelPodUID: c.PodUID, cri.LabelPodName: c.PodName, cri.LabelPodNamespace: c.PodNamespace,
			cri.LabelContainerName: c.Name,
		},
		Annotations: map[string]string{
			"io.kubernetes.container.hash": strconv.FormatUint(c.Hash, 16), "io.kubernetes.container.restartCount": "0",
		},
	}
}

// Calls counts calls by method since the last time.
func (r *Runtime) Calls() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.calls
	r.calls = map[string]int{}
	return was
}

func (r *Runtime) count(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	method := path.Base(info.FullMethod)
	r.mu.Lock()
	r.calls[method]++
	broken := r.broken[method]
	r.mu.Unlock()
	if broken {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	return handle(ctx, request)
}

// Version is that of a containerd.
func (*Runtime) Version(context.Context, *criv1.VersionRequest) (*criv1.VersionResponse, error) {
	return &criv1.VersionResponse{RuntimeName: "containerd", RuntimeVersion: "v2.4.2", RuntimeApiVersion: "v1"}, nil
}

// Status is fine.
func (*Runtime) Status(context.Context, *criv1.StatusRequest) (*criv1.StatusResponse, error) {
	return &criv1.StatusResponse{Status: &criv1.RuntimeStatus{}}, nil
}

// ImageFsInfo is nothing.
func (*Runtime) ImageFsInfo(context.Context, *criv1.ImageFsInfoRequest) (*criv1.ImageFsInfoResponse, error) {
	return &criv1.ImageFsInfoResponse{}, nil
}

// ListImages lists none.
func (*Runtime) ListImages(context.Context, *criv1.ListImagesRequest) (*criv1.ListImagesResponse, error) {
	return &criv1.ListImagesResponse{}, nil
}

// ImageStatus finds none.
func (*Runtime) ImageStatus(context.Context, *criv1.ImageStatusRequest) (*criv1.ImageStatusResponse, error) {
	return &criv1.ImageStatusResponse{}, nil
}

// PullImage pulls at once.
func (*Runtime) PullImage(_ context.Context, q *criv1.PullImageRequest) (*criv1.PullImageResponse, error) {
	return &criv1.PullImageResponse{ImageRef: fmt.Sprintf("sha256:%064x", len(q.GetImage().GetImage()))}, nil
}

// ListContainers lists those with all labels that are asked for.
func (r *Runtime) ListContainers(
	_ context.Context, q *criv1.ListContainersRequest,
) (*criv1.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var listed []*criv1.Container
	for _, c := range r.containers {
		if id := q.GetFilter().GetId(); id != "" && id != c.GetId() || !has(c.GetLabels(), q.GetFilter().GetLabelSelector()) {
			continue
		}
		listed = append(listed, &criv1.Container{
			Id:           c.GetId(),
			PodSandboxId: "of-" + c.GetId(),
			Metadata:     c.GetMetadata(),
			State:        c.GetState(),
			CreatedAt:    c.GetCreatedAt(),
			Labels:       maps.Clone(c.GetLabels()),
			Annotations:  maps.Clone(c.GetAnnotations()),
		})
	}
	return &criv1.ListContainersResponse{Containers: listed}, nil
}

func has(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// ContainerStatus finds one by its ID.
func (r *Runtime) ContainerStatus(
	_ context.Context, q *criv1.ContainerStatusRequest,
) (*criv1.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[q.GetContainerId()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "container %q: not found", q.GetContainerId())
	}
	// A copy, for it is sent without the lock.
	return &criv1.ContainerStatusResponse{Status: &criv1.ContainerStatus{
		Id:          c.GetId(),
		Metadata:    c.GetMetadata(),
		State:       c.GetState(),
		CreatedAt:   c.GetCreatedAt(),
		StartedAt:   c.GetStartedAt(),
		FinishedAt:  c.GetFinishedAt(),
		Labels:      maps.Clone(c.GetLabels()),
		Annotations: maps.Clone(c.GetAnnotations()),
	}}, nil
}

// StopContainer ends one.
func (r *Runtime) StopContainer(
	_ context.Context, q *criv1.StopContainerRequest,
) (*criv1.StopContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[q.GetContainerId()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "container %q: not found", q.GetContainerId())
	}
	c.State, c.FinishedAt = criv1.ContainerState_CONTAINER_EXITED, c.GetStartedAt()+1
	return &criv1.StopContainerResponse{}, nil
}

// GetContainerEvents sends no events, and returns when the listener is gone.
func (*Runtime) GetContainerEvents(
	_ *criv1.GetEventsRequest, stream grpc.ServerStreamingServer[criv1.ContainerEventResponse],
) error {
	<-stream.Context().Done()
	return errors.New("the listener has gone")
}

// Answer has commands in containers answered: the answer has the ID of the container, and returns the exit code and the
// output.
func (r *Runtime) Answer(answer func(id string, command []string) (code int32, output string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// ExecSync answers as Answer says.
func (r *Runtime) ExecSync(_ context.Context, q *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
	r.mu.Lock()
	answer := r.answer
	r.mu.Unlock()
	if answer == nil {
		return nil, status.Error(codes.Unimplemented, "no answers to commands")
	}
	code, output := answer(q.GetContainerId(), q.GetCmd())
	return &criv1.ExecSyncResponse{ExitCode: code, Stdout: []byte(output), Stderr: []byte(output)}, nil
}

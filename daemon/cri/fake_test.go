package cri_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fake is a container runtime in memory, on a real socket. Its fields may be set before it serves.
type fake struct {
	criv1.UnimplementedRuntimeServiceServer
	criv1.UnimplementedImageServiceServer

	name       string // containerd by default, - for none
	containers []*criv1.ContainerStatus
	sandboxes  map[string]*criv1.PodSandboxStatus
	images     []*criv1.Image
	stores     []*criv1.FilesystemUsage
	// exec is what a command does.
	exec func(context.Context, *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error)
	// registry is what a pull does.
	registry func(context.Context, *criv1.PullImageRequest) (string, error)
	// before comes before each call; an error is the call's.
	before func(ctx context.Context, method string) error

	mu     sync.Mutex
	calls  []any // requests
	server *grpc.Server
}

// serve listens at a path and serves there until stop.
func (f *fake) serve(path string) error {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	intercept := func(ctx context.Context, q any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		f.mu.Lock()
		f.calls = append(f.calls, q)
		f.mu.Unlock()
		if f.before != nil {
			if err := f.before(ctx, info.FullMethod); err != nil {
				return nil, err
			}
		}
		return handle(ctx, q)
	}
	f.server = grpc.NewServer(grpc.UnaryInterceptor(intercept), grpc.MaxSendMsgSize(64<<20))
	criv1.RegisterRuntimeServiceServer(f.server, f)
	criv1.RegisterImageServiceServer(f.server, f)
	server := f.server
	go func() { _ = server.Serve(listener) }()
	return nil
}

// stop ends it as a runtime that is killed, and removes the socket.
func (f *fake) stop(path string) {
	f.server.Stop()
	_ = os.Remove(path)
}

// last returns the last request of a type.
func last[Q any](f *fake) Q {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range slices.Backward(f.calls) {
		if q, ok := call.(Q); ok {
			return q
		}
	}
	var none Q
	return none
}

func (f *fake) Version(context.Context, *criv1.VersionRequest) (*criv1.VersionResponse, error) {
	name := cmp.Or(f.name, "containerd")
	if name == "-" {
		name = ""
	}
	return &criv1.VersionResponse{RuntimeName: name, RuntimeVersion: "v2.4.2", RuntimeApiVersion: "v1"}, nil
}

func (f *fake) ImageFsInfo(context.Context, *criv1.ImageFsInfoRequest) (*criv1.ImageFsInfoResponse, error) {
	return &criv1.ImageFsInfoResponse{ImageFilesystems: f.stores}, nil
}

func (f *fake) ListImages(context.Context, *criv1.ListImagesRequest) (*criv1.ListImagesResponse, error) {
	return &criv1.ListImagesResponse{Images: f.images}, nil
}

func (f *fake) ImageStatus(_ context.Context, q *criv1.ImageStatusRequest) (*criv1.ImageStatusResponse, error) {
	for _, i := range f.images {
		if i.Id == q.Image.Image || slices.Contains(i.RepoTags, q.Image.Image) ||
			slices.Contains(i.RepoDigests, q.Image.Image) {
			return &criv1.ImageStatusResponse{Image: i}, nil
		}
	}
	return &criv1.ImageStatusResponse{}, nil
}

func (f *fake) PullImage(ctx context.Context, q *criv1.PullImageRequest) (*criv1.PullImageResponse, error) {
	reference, err := f.registry(ctx, q)
	return &criv1.PullImageResponse{ImageRef: reference}, err
}

// ListContainers takes the beginning of an ID for the ID, as containerd does.
func (f *fake) ListContainers(
	_ context.Context, q *criv1.ListContainersRequest,
) (*criv1.ListContainersResponse, error) {
	var listed []*criv1.Container
	for _, c := range f.containers {
		if id := q.Filter.GetId(); len(id) > len(c.Id) || c.Id[:len(id)] != id {
			continue
		}
		wanted := q.Filter.GetLabelSelector()
		if !maps.Equal(wanted, intersection(wanted, c.Labels)) {
			continue
		}
		listed = append(listed, &criv1.Container{
			Id: c.Id, PodSandboxId: "sandbox-of-" + c.Id, Metadata: c.Metadata, Image: c.Image, ImageRef: c.ImageRef,
			State: c.State, CreatedAt: c.CreatedAt, Labels: c.Labels, Annotations: c.Annotations,
		})
	}
	return &criv1.ListContainersResponse{Containers: listed}, nil
}

func intersection(a, b map[string]string) map[string]string {
	both := map[string]string{}
	for k, v := range a {
		if b[k] == v {
			both[k] = v
		}
	}
	return both
}

func (f *fake) find(id string) (*criv1.ContainerStatus, error) {
	for _, c := range f.containers {
		if c.Id == id {
			return c, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found", id)
}

func (f *fake) ContainerStatus(
	_ context.Context, q *criv1.ContainerStatusRequest,
) (*criv1.ContainerStatusResponse, error) {
	c, err := f.find(q.ContainerId)
	return &criv1.ContainerStatusResponse{Status: c}, err
}

func (f *fake) StopContainer(_ context.Context, q *criv1.StopContainerRequest) (*criv1.StopContainerResponse, error) {
	_, err := f.find(q.ContainerId)
	return &criv1.StopContainerResponse{}, err
}

func (f *fake) ExecSync(ctx context.Context, q *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
	return f.exec(ctx, q)
}

func (f *fake) PodSandboxStatus(
	_ context.Context, q *criv1.PodSandboxStatusRequest,
) (*criv1.PodSandboxStatusResponse, error) {
	if s, ok := f.sandboxes[q.PodSandboxId]; ok {
		return &criv1.PodSandboxStatusResponse{Status: s}, nil
	}
	return nil, status.Error(codes.NotFound, fmt.Sprintf("an error occurred when try to find sandbox: %s", q.PodSandboxId))
}

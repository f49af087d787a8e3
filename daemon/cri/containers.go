package cri

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Query selects containers. The zero value selects all of the node.
type Query struct {
	// PodUID is the pod's.
	PodUID string
	// Name of the container in the pod's spec.
	Name string
	// ID of the container.
	ID string
}

func (q Query) filter() *criv1.ContainerFilter {
	f := &criv1.ContainerFilter{Id: q.ID, LabelSelector: map[string]string{}}
	if q.PodUID != "" {
		f.LabelSelector[LabelPodUID] = q.PodUID
	}
	if q.Name != "" {
		f.LabelSelector[LabelContainerName] = q.Name
	}
	return f
}

// Containers returns the containers that the query selects, those that have ended included, the newest first. It is one
// call, and one more for each container.
func (r *Runtime) Containers(ctx context.Context, q Query) ([]Container, error) {
	listing := operation{verb: "list containers"}
	listed, err := call(ctx, r, listing,
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.ListContainersResponse, error) {
			return r.runtime.ListContainers(ctx, &criv1.ListContainersRequest{Filter: q.filter()}, o...)
		})
	if err != nil {
		return nil, err
	}
	containers := make([]Container, 0, len(listed.GetContainers()))
	for _, c := range listed.GetContainers() {
		// Runtimes take the beginning of an ID for the ID.
		if q.ID != "" && c.GetId() != q.ID {
			continue
		}
		s, err := r.status(ctx, c.GetId())
		if errors.Is(err, ErrNotFound) {
			continue // removed since
		}
		if err != nil {
			return nil, err
		}
		containers = append(containers, containerOf(c, s))
	}
	slices.SortFunc(containers, newestFirst)
	return containers, nil
}

func newestFirst(a, b Container) int {
	m, _ := a.RestartCount()
	n, _ := b.RestartCount()
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(n, m), cmp.Compare(a.ID, b.ID))
}

func (r *Runtime) status(ctx context.Context, id string) (*criv1.ContainerStatus, error) {
	asking := operation{verb: "ask for the status of container", object: id}
	s, err := call(ctx, r, asking,
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.ContainerStatusResponse, error) {
			return r.runtime.ContainerStatus(ctx, &criv1.ContainerStatusRequest{ContainerId: id}, o...)
		})
	return s.GetStatus(), err
}

// Stop ends a container: it asks it to end, and kills it after grace, which is rounded up to seconds. Below a second it
// is killed at once. It returns when the container has ended. One that has ended already is no error; whether one that
// is gone is an ErrNotFound depends on the runtime. The preStop hook is not run, and the kubelet may start another.
func (r *Runtime) Stop(ctx context.Context, id string, grace time.Duration) error {
	seconds := wholeSeconds(grace)
	stopping := operation{verb: "stop container", object: id, more: time.Duration(seconds) * time.Second}
	_, err := call(ctx, r, stopping,
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.StopContainerResponse, error) {
			return r.runtime.StopContainer(ctx, &criv1.StopContainerRequest{ContainerId: id, Timeout: seconds}, o...)
		})
	return err
}

// wholeSeconds rounds up: a runtime would take a part of a second for none, or for no limit.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(max(d, 0) / time.Second)
	if d > 0 && d%time.Second != 0 {
		seconds++
	}
	return seconds
}

// Sandbox is what the containers of a pod run in.
type Sandbox struct {
	// IPs of the pod, the primary one first. None if the pod uses the network of its node.
	IPs []string
}

// Sandbox returns the sandbox of an ID, or ErrNotFound.
func (r *Runtime) Sandbox(ctx context.Context, id string) (Sandbox, error) {
	asking := operation{verb: "ask for the status of sandbox", object: id}
	s, err := call(ctx, r, asking,
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.PodSandboxStatusResponse, error) {
			return r.runtime.PodSandboxStatus(ctx, &criv1.PodSandboxStatusRequest{PodSandboxId: id}, o...)
		})
	if err != nil {
		return Sandbox{}, err
	}
	return sandboxOf(s.GetStatus()), nil
}

func sandboxOf(s *criv1.PodSandboxStatus) Sandbox {
	var sandbox Sandbox
	if ip := s.GetNetwork().GetIp(); ip != "" {
		sandbox.IPs = append(sandbox.IPs, ip)
	}
	for _, more := range s.GetNetwork().GetAdditionalIps() {
		sandbox.IPs = append(sandbox.IPs, more.GetIp())
	}
	return sandbox
}

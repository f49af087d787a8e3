package cri

import (
	"context"
	"errors"
	"fmt"
)

// Search says where to look for runtimes.
type Search struct {
	// Root is the directory that sockets are looked for in: /run on a node, or where a container has mounted the
	// node's. Required but on Windows, which has no sockets.
	Root string
	// Socket is the path of a socket below Root. If it is set, no other is looked for. Not for Windows.
	Socket string
}

// Skipped is an endpoint that is there, and not of use.
type Skipped struct {
	Endpoint string
	Reason   error
}

// Runtimes are those of a node. Most have one.
type Runtimes struct {
	// Found has at least one. The first is the one to pull images with.
	Found []*Runtime
	// Skipped are the endpoints that Detect did not use, with the reasons. It is for logs.
	Skipped []Skipped
}

// candidate is an endpoint that is there, or the reason why it is not of use.
type candidate struct {
	endpoint string
	reason   error
}

// Detect opens each runtime that listens at one of the usual places, in this order: containerd, CRI-O, cri-dockerd, and
// those that k3s, RKE2 and k0s bring along. Several paths of one socket are one runtime. One that is of no use is
// skipped; the error says why when none is left, and is ErrNoSocket when there was none. Runtimes start later than
// others at times: trying again is right.
//
// Docker brings a containerd that serves no CRI, which is skipped. A node with a second containerd that does serve it
// needs Search.Socket.
func Detect(ctx context.Context, s Search, o Options) (*Runtimes, error) {
	candidates, err := s.candidates()
	if err != nil {
		return nil, err
	}
	var found Runtimes
	for _, c := range candidates {
		var r *Runtime
		if c.reason == nil {
			r, c.reason = Open(ctx, c.endpoint, o)
		}
		if c.reason != nil {
			found.Skipped = append(found.Skipped, Skipped{Endpoint: c.endpoint, Reason: c.reason})
			continue
		}
		found.Found = append(found.Found, r)
	}
	if len(found.Found) > 0 {
		return &found, nil
	}
	reasons := make([]error, 0, len(found.Skipped))
	for _, skipped := range found.Skipped {
		reasons = append(reasons, skipped.Reason)
	}
	if len(reasons) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNoSocket, s.Root)
	}
	return nil, fmt.Errorf("no container runtime is of use: %w", errors.Join(reasons...))
}

// Default is the first that was found.
func (r *Runtimes) Default() *Runtime { return r.Found[0] }

// Close closes all of them.
func (r *Runtimes) Close() error {
	var failures []error
	for _, runtime := range r.Found {
		failures = append(failures, runtime.Close())
	}
	return errors.Join(failures...)
}

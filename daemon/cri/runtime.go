package cri

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runtime is a container runtime of this node. Make it with Open or Detect, and Close it.
type Runtime struct {
	endpoint string
	name     string
	stores   stores
	options  Options
	link     *link
	runtime  criv1.RuntimeServiceClient
	images   criv1.ImageServiceClient
}

// Version is what a runtime says of itself.
type Version struct {
	// Name, such as containerd, cri-o or docker: what the IDs of its containers begin with in a pod's status.
	Name string
	// Version of the runtime, and API of CRI.
	Version, API string
}

// Open connects to the runtime at an endpoint: unix:///path, an absolute path, or npipe://./pipe/name on Windows. It
// fails at once when no process listens there, and when the runtime does not serve what this package calls: CRI v1,
// images included, and a name.
func Open(ctx context.Context, at string, o Options) (*Runtime, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	e, err := parseEndpoint(at)
	if err != nil {
		return nil, err
	}
	if e.scheme != dialScheme {
		return nil, fmt.Errorf("endpoint %q: this system has %s endpoints", at, dialScheme)
	}
	r := &Runtime{endpoint: at, options: o.withDefaults(), link: newLink(e.address)}
	if err := r.connect(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", at, err)
	}
	if err := r.probe(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", at, err), r.Close())
	}
	return r, nil
}

// connect begins to keep a connection.
func (r *Runtime) connect(ctx context.Context) error {
	conn, err := grpc.NewClient("passthrough:///runtime",
		grpc.WithContextDialer(r.link.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// Runtimes refuse an authority that is the path of a socket.
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 1.6, Jitter: 0.1, MaxDelay: longestPause},
			MinConnectTimeout: r.options.CallTimeout,
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what is opened
	}
	// It ends with Close, whatever becomes of the context that Open was called with.
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.link.conn, r.link.stop = conn, stop
	r.runtime, r.images = criv1.NewRuntimeServiceClient(conn), criv1.NewImageServiceClient(conn)
	conn.Connect()
	go r.link.keep(keeping)
	return nil
}

// probe finds out whether the runtime is of use, with more patience than the calls afterwards have.
func (r *Runtime) probe(ctx context.Context) error {
	patient := *r
	patient.options.CallTimeout = r.options.OpenTimeout
	waiting, done := within(ctx, patient.options.CallTimeout)
	defer done()
	connecting := operation{verb: "connect"}
	if err := r.link.ready(waiting, true); err != nil {
		return connecting.unready(waiting, err)
	}
	filesystems := operation{verb: "ask for the file systems of images"}
	info, err := call(ctx, &patient, filesystems,
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.ImageFsInfoResponse, error) {
			return r.images.ImageFsInfo(ctx, &criv1.ImageFsInfoRequest{}, o...)
		})
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("it does not serve CRI v1: %w", err)
	}
	if err != nil {
		return err
	}
	r.stores = storesOf(info)
	if _, err := patient.Images(ctx); err != nil {
		return err
	}
	version, err := patient.Version(ctx)
	if err != nil {
		return err
	}
	if version.Name == "" {
		return errors.New("the runtime has no name")
	}
	r.name = version.Name
	return nil
}

// Close ends the connection, and with it all calls that are under way. Calls afterwards fail.
func (r *Runtime) Close() error {
	if err := r.link.close(); err != nil {
		return fmt.Errorf("close %s: %w", r.endpoint, err)
	}
	return nil
}

// Name of the runtime when it was opened: containerd, cri-o, docker, ...
func (r *Runtime) Name() string { return r.name }

// Endpoint that it was opened at.
func (r *Runtime) Endpoint() string { return r.endpoint }

// Version asks the runtime what it is.
func (r *Runtime) Version(ctx context.Context) (Version, error) {
	v, err := call(ctx, r, operation{verb: "ask for the version"},
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.VersionResponse, error) {
			return r.runtime.Version(ctx, &criv1.VersionRequest{Version: "v1"}, o...)
		})
	if err != nil {
		return Version{}, err
	}
	return Version{Name: v.GetRuntimeName(), Version: v.GetRuntimeVersion(), API: v.GetRuntimeApiVersion()}, nil
}

//go:build envtest

package nodetest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
)

// ErrNotYet is an error for Until that needs no words.
var ErrNotYet = errors.New("not yet")

// Bench is a namespace of a shared API server, with a node of its own.
type Bench struct {
	*testing.T
	*Node

	// Client reads and writes live.
	Client    client.WithWatch
	Namespace string
	// NodeName is the name of the node.
	NodeName string
	// Requests are those of the managers.
	Requests *requests.Recorder

	config *rest.Config
}

// NewBench starts the node. The test runs with others at the same time.
func NewBench(t *testing.T, ways map[string]Way, o cluster.Options) *Bench {
	t.Helper()
	t.Parallel()
	c := cluster.Start(t, o)
	b := &Bench{T: t, Namespace: c.Namespace(t), config: rest.CopyConfig(c.Config)}
	b.config.QPS = -1
	var err error
	if b.Client, err = client.NewWithWatch(b.config, client.Options{Scheme: o.Scheme}); err != nil {
		t.Fatal(err)
	}
	b.Requests = &requests.Recorder{Namespace: b.Namespace}
	b.NodeName = "node-" + b.Namespace
	b.Node = New(b.NodeName, ways)
	b.Background(func(ctx context.Context) error { return b.Node.Run(ctx, b.Client, b.Namespace) })
	return b
}

// Background runs something until the test ends.
func (b *Bench) Background(run func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
}

// Manager makes a manager whose cache has the pods of the node, and other objects as said.
func (b *Bench) Manager(others map[client.Object]cache.ByObject) ctrl.Manager {
	b.Helper()
	counted := rest.CopyConfig(b.config)
	counted.Wrap(b.Requests.Wrap)
	by := map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", b.NodeName)},
	}
	maps.Copy(by, others)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: b.Client.Scheme(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.Namespace: {}}, ByObject: by},
	})
	if err != nil {
		b.Fatal(err)
	}
	return mgr
}

// Look reads an object as it is now.
func (b *Bench) Look(ctx context.Context, o client.Object) error {
	return b.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
}

// Until waits for something to be so.
func (b *Bench) Until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		b.Fatalf("%v; last: %v\nrequests:\n%s", err, last, strings.Join(b.Requests.Take(), "\n"))
	}
}

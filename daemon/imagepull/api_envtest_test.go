//go:build envtest

package imagepull

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/cluster"
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// node is one of a real API server. Its runtime is not real.
type node struct {
	*testing.T
	name   string
	client client.Client
	config *rest.Config
	scheme *runtime.Scheme
	// secrets is a namespace that the node reads secrets in.
	secrets string
	images  *images
}

func newNode(t *testing.T) *node {
	t.Helper()
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := cluster.Start(t, cluster.Options{
		Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_nodeimages.yaml"},
	})
	n := &node{
		T:       t,
		client:  c.Client,
		config:  c.Config,
		scheme:  scheme,
		secrets: c.Namespace(t),
		images:  newImages(),
	}
	// An earlier run may have left events of its node in the control plane.
	n.name = strings.ToLower(t.Name()) + "-" + n.secrets
	object := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	if err := n.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.client.Delete(context.Background(), object); err != nil {
			t.Error(err)
		}
	})
	return n
}

// begin starts a process on the node, and gives what stops it.
func (n *node) begin() (stop func()) {
	n.Helper()
	mgr, err := ctrl.NewManager(n.config, ctrl.Options{
		Scheme: n.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&v1beta1.NodeImage{}: CacheOf(n.name)}},
	})
	if err != nil {
		n.Fatal(err)
	}
	r, err := New(mgr.GetClient(), n.name, n.images, Options{})
	if err != nil {
		n.Fatal(err)
	}
	if err := r.SetupWithManager(n.Context(), mgr, controller.Options{}); err != nil {
		n.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			n.Error(err)
		}
	})
	n.Cleanup(stop)
	return stop
}

// change asks for something else, as a controller does.
func (n *node) change(how ...func(*v1beta1.NodeImage)) {
	n.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o := n.read()
		for _, h := range how {
			h(o)
		}
		for _, i := range o.Spec.Images {
			for t := range i.Tags {
				i.Tags[t].CreatedAt = ptr.To(metav1.Now())
			}
		}
		return n.client.Update(n.Context(), o)
	}); err != nil {
		n.Fatal(err)
	}
}

func (n *node) read() *v1beta1.NodeImage {
	n.Helper()
	o := &v1beta1.NodeImage{}
	if err := n.client.Get(n.Context(), client.ObjectKey{Name: n.name}, o); err != nil {
		n.Fatal(err)
	}
	return o
}

// eventually waits for the NodeImage to be as wanted.
func (n *node) eventually(check func(*v1beta1.NodeImage) error) {
	n.Helper()
	var last error
	err := wait.PollUntilContextTimeout(n.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			last = check(n.read())
			return last == nil, nil
		})
	if err != nil {
		n.Fatalf("%v; last: %v\nstatus: %+v", err, last, n.read().Status)
	}
}

// settled says that as many tags have succeeded, and that the status is what follows from it.
func settled(succeeded int32) func(*v1beta1.NodeImage) error {
	return func(o *v1beta1.NodeImage) error {
		if plan := imagepull.Work(o, nil); o.Status.Succeeded != succeeded || o.Status.Desired != succeeded ||
			len(plan.Start) > 0 {
			return fmt.Errorf("%d succeeded of %d, %d pulls are not settled",
				o.Status.Succeeded, o.Status.Desired, len(plan.Start))
		}
		return nil
	}
}

// A process pulls with a secret that it reads. The next one pulls what is not settled, and removes the status of what
// leaves.
func TestOnAPIServer(t *testing.T) {
	n := newNode(t)
	secret := dockerConfig("a", "docker.io", "hub")
	secret.Namespace = n.secrets
	if err := n.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	n.images.pull = func(ctx context.Context, c call) (string, error) {
		switch {
		case c.reference == "slow:1" && c.number == 1:
			<-ctx.Done()
			return "", ctx.Err()
		case c.reference == "nginx:1":
			return opens("hub")(ctx, c)
		}
		return "sha256:1", nil
	}
	stop := n.begin()
	n.change(asks("nginx:1", 0), asks("redis:1", 0), asks("slow:1", 7), func(o *v1beta1.NodeImage) {
		i := o.Spec.Images["nginx"]
		i.PullSecrets = []v1beta1.ReferenceObject{{Namespace: n.secrets, Name: "a"}, {Namespace: n.secrets, Name: "absent"}}
		o.Spec.Images["nginx"] = i
	})
	n.eventually(func(o *v1beta1.NodeImage) error {
		if o.Status.Succeeded != 2 || o.Status.Pulling != 1 {
			return errors.New("two have not ended")
		}
		return nil
	})
	n.eventuallyTold(2)
	stop()
	n.begin()
	n.eventually(settled(3))
	n.eventuallyTold(3)
	pulled := n.images.pulled()
	slices.Sort(pulled)
	if !slices.Equal(pulled, []string{"nginx:1", "redis:1", "slow:1", "slow:1"}) {
		t.Errorf("pulled %v", pulled)
	}
	n.change(leaves("redis"))
	n.eventually(settled(2))
}

// eventuallyTold waits for the events of a number of pulls, which a process sends after it has written the status.
func (n *node) eventuallyTold(pulls int) {
	n.Helper()
	err := wait.PollUntilContextTimeout(n.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			var events corev1.EventList
			if err := n.client.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
				return false, err
			}
			told := 0
			for _, e := range events.Items {
				if e.InvolvedObject.Name == n.name && e.Reason == reasonSucceeded && e.Source.Component == component {
					told++
				}
			}
			return told == pulls, nil
		})
	if err != nil {
		n.Errorf("no events of %d pulls: %v", pulls, err)
	}
}

//go:build envtest

package imagepull

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
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
	secrets  string
	images   *images
	options  Options
	requests *requests.Recorder
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
		T:        t,
		client:   c.Client,
		config:   c.Config,
		scheme:   scheme,
		secrets:  c.Namespace(t),
		images:   newImages(),
		requests: &requests.Recorder{},
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
func (n *node) begin() (*Reconciler, func()) {
	n.Helper()
	config := rest.CopyConfig(n.config)
	config.Wrap(n.requests.Wrap)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: n.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&v1beta1.NodeImage{}: CacheOf(n.name)}},
	})
	if err != nil {
		n.Fatal(err)
	}
	r, err := New(mgr.GetClient(), n.name, n.images, n.options)
	if err != nil {
		n.Fatal(err)
	}
	if err := r.SetupWithManager(n.Context(), mgr, controller.Options{}); err != nil {
		n.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			n.Error(err)
		}
	})
	n.Cleanup(stop)
	return r, stop
}

// change asks for something else, as a controller does.
func (n *node) change(how ...func(*v1beta1.NodeImage)) {
	n.Helper()
	n.update(n.client.Update, func(o *v1beta1.NodeImage) {
		for _, h := range how {
			h(o)
		}
		for _, i := range o.Spec.Images {
			for t := range i.Tags {
				i.Tags[t].CreatedAt = ptr.To(metav1.Now())
			}
		}
	})
}

// overwrite writes the whole status, as the reference's controller does.
func (n *node) overwrite(how func(*v1beta1.NodeImage)) {
	n.Helper()
	n.update(func(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
		return n.client.Status().Update(ctx, o)
	}, how)
}

func (n *node) update(
	write func(context.Context, client.Object, ...client.UpdateOption) error, how func(*v1beta1.NodeImage),
) {
	n.Helper()
	for {
		o := n.read()
		how(o)
		err := write(n.Context(), o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			n.Fatal(err)
		}
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

// settled says that as many tags have succeeded and failed, and that the status is what follows from it.
func settled(succeeded, failed int32) func(*v1beta1.NodeImage) error {
	return func(o *v1beta1.NodeImage) error {
		if o.Status.Succeeded != succeeded || o.Status.Failed != failed || o.Status.Desired != succeeded+failed {
			return fmt.Errorf("%d succeeded, %d failed of %d", o.Status.Succeeded, o.Status.Failed, o.Status.Desired)
		}
		if plan := imagepull.Work(o, nil); len(plan.Start) > 0 {
			return fmt.Errorf("%d pulls are not settled", len(plan.Start))
		}
		return nil
	}
}

// Many pulls cost few writes, and none once they have ended.
func TestWritesOfManyPulls(t *testing.T) {
	n := newNode(t)
	n.options.MaxPulls = -1
	gate := make(chan struct{})
	n.images.pull = func(ctx context.Context, _ call) (string, error) {
		select {
		case <-gate:
			return "sha256:1", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	began := time.Now()
	r, _ := n.begin()
	const tags = 50
	n.change(func(o *v1beta1.NodeImage) {
		for i := range tags {
			asks(fmt.Sprintf("nginx:%d", i), 0)(o)
		}
	})
	n.eventually(func(o *v1beta1.NodeImage) error {
		if o.Status.Pulling != tags {
			return errors.New("not all are under way")
		}
		return nil
	})
	close(gate)
	n.eventually(settled(tags, 0))
	made := requests.Without(n.requests.Take(), "GET ")
	if allowed := 5 + int(time.Since(began)/(2*time.Second)); len(made) > allowed {
		t.Errorf("%d writes for %d pulls in %s, %d are allowed:\n%s",
			len(made), tags, time.Since(began), allowed, strings.Join(made, "\n"))
	}
	t.Logf("%d pulls: %d writes", tags, len(made))
	asked, _ := n.images.asked()
	for range 3 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: n.name}}); err != nil {
			t.Error(err)
		}
	}
	if more := requests.Without(n.requests.Take(), "GET "); more != nil {
		t.Errorf("writes when nothing has changed: %q", more)
	}
	if again, _ := n.images.asked(); again != asked {
		t.Errorf("%d calls of the runtime when nothing has changed", again-asked)
	}
}

// Another writer owns the whole status by now, and loses nothing of what is its to say. The rest is mended, also what
// is to be taken out: a result that is gone is that of another pull.
func TestSecondWriter(t *testing.T) {
	n := newNode(t)
	n.images.pull = func(ctx context.Context, c call) (string, error) {
		if c.reference == "slow:1" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "sha256:1", nil
	}
	n.begin()
	n.change(asks("nginx:1", 0), asks("redis:1", 0), asks("slow:1", 0))
	n.eventually(func(o *v1beta1.NodeImage) error {
		if o.Status.Succeeded != 2 || o.Status.Pulling != 1 {
			return errors.New("not yet")
		}
		return nil
	})
	n.overwrite(func(o *v1beta1.NodeImage) {
		o.Status = v1beta1.NodeImageStatus{Desired: 99, ImageStatuses: map[string]v1beta1.ImageStatus{
			"slow": {
				Tags: []v1beta1.ImageTagStatus{{
					Tag: "1", Phase: v1beta1.ImagePhaseFailed, CompletionTime: ptr.To(metav1.Now()), Message: "too late",
				}},
			},
			"nobody": {Tags: []v1beta1.ImageTagStatus{{Tag: "1", Phase: v1beta1.ImagePhaseFailed}}},
		}}
	})
	n.eventually(settled(2, 1))
	now := n.read().Status
	if _, there := now.ImageStatuses["nobody"]; there {
		t.Error("what nobody asks for is still there")
	}
	if s := now.ImageStatuses["slow"].Tags[0]; s.Message != "too late" {
		t.Errorf("what the other has settled is %+v", s)
	}
	n.change(leaves("redis"))
	n.eventually(settled(1, 1))
}

// A process that restarts pulls what is not settled, with a secret that it reads then.
func TestProcessStartsAnew(t *testing.T) {
	n := newNode(t)
	secret := dockerConfig("a", "docker.io", "hub")
	secret.Namespace = n.secrets
	if err := n.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	n.images.pull = func(ctx context.Context, c call) (string, error) {
		if c.reference == "nginx:2" && c.number == 1 {
			close(started)
			<-ctx.Done()
			return "", ctx.Err()
		}
		return opens("hub")(ctx, c)
	}
	_, stop := n.begin()
	n.change(asks("nginx:1", 0), asks("nginx:2", 7), func(o *v1beta1.NodeImage) {
		i := o.Spec.Images["nginx"]
		i.PullSecrets = []v1beta1.ReferenceObject{{Namespace: n.secrets, Name: "a"}, {Namespace: n.secrets, Name: "absent"}}
		o.Spec.Images["nginx"] = i
	})
	<-started
	n.eventually(func(o *v1beta1.NodeImage) error {
		if o.Status.Succeeded != 1 {
			return errors.New("the first has not ended")
		}
		return nil
	})
	n.eventuallyTold(1)
	stop()
	n.begin()
	n.eventually(settled(2, 0))
	count := map[string]int{}
	for _, reference := range n.images.pulled() {
		count[reference]++
	}
	if count["nginx:1"] != 1 || count["nginx:2"] != 2 {
		t.Errorf("pulled %v", count)
	}
	n.eventuallyTold(2)
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

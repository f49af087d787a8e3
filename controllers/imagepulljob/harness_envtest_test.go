//go:build envtest

package imagepulljob_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/requests"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with a reconciler, nodes of its own, and something that pulls on them.
type bench struct {
	*testing.T

	client    client.Client
	config    *rest.Config
	scheme    *runtime.Scheme
	namespace string
	// copies is the namespace that the nodes read secrets from.
	copies string
	// cache is that of the reconciler.
	cache    client.Reader
	requests *requests.Recorder
	passes   *passes
	nodes    *nodes
	// patience is how long until waits.
	patience time.Duration
}

// start runs a test with others at the same time.
func start(t *testing.T, o imagepulljob.Options) *bench {
	t.Helper()
	return startWith(t, o, plain)
}

// startWith gives the reconciler a client of another kind.
func startWith(t *testing.T, o imagepulljob.Options, wrap func(client.WithWatch) client.Client) *bench {
	t.Helper()
	t.Parallel()
	b := newBench(t)
	b.run(b.config, b.nodes.add)
	b.reconcile(o, wrap)
	return b
}

// plain is the client as it is.
func plain(c client.WithWatch) client.Client { return c }

// newBench has no reconciler yet, and nothing that pulls.
func newBench(t *testing.T) *bench {
	t.Helper()
	var o cluster.Options
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o.Scheme = scheme
	for _, crd := range []string{"imagepulljobs", "nodeimages", "clonesets", "statefulsets"} {
		o.CRDDirs = append(o.CRDDirs, "../../config/crd/bases/apps.kruise.io_"+crd+".yaml")
	}
	c := cluster.Start(t, o)
	namespace := c.Namespace(t)
	b := &bench{
		T: t, client: c.Client, config: c.Config, scheme: scheme, namespace: namespace, copies: c.Namespace(t),
		requests: &requests.Recorder{Namespace: namespace}, passes: &passes{}, patience: 2 * time.Minute,
	}
	b.nodes = &nodes{bench: b, behave: map[string]v1beta1.ImagePullPhase{}, pulling: map[string]bool{}}
	return b
}

// reconcile starts a reconciler of the namespace, and gives what stops it. It stops with the test at the latest.
func (b *bench) reconcile(o imagepulljob.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	if o.SecretNamespace == "" {
		o.SecretNamespace = b.copies
	}
	o.Explain = func(_ context.Context, job types.NamespacedName, _ []note.Note) { b.passes.count(job.Name) }
	counted := rest.CopyConfig(b.config)
	counted.QPS = -1
	counted.Wrap(b.requests.Wrap)
	return b.run(counted, func(mgr ctrl.Manager) error {
		b.cache = mgr.GetCache()
		watching, err := client.NewWithWatch(counted, client.Options{
			Scheme: b.scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache(), DisableFor: []client.Object{&corev1.Secret{}}},
		})
		if err != nil {
			return err
		}
		r, err := imagepulljob.New(wrap(watching), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

// run starts a manager of the namespace that ends with the test, or when it is stopped.
func (b *bench) run(config *rest.Config, add func(ctrl.Manager) error) (stop func()) {
	b.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: b.scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := add(mgr); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// node is the name of one of the bench's nodes.
func (b *bench) node(n int) string { return fmt.Sprintf("%s-%03d", b.namespace, n) }

// have makes NodeImages of the nodes from 1 to n.
func (b *bench) have(n int, change ...func(*v1beta1.NodeImage)) {
	b.Helper()
	for i := range n {
		b.haveOne(i+1, change...)
	}
	if b.cache != nil {
		b.seen(n) // on a busy machine this may take longer than a job waits for its nodes
	}
}

// seen waits until the reconciler's cache has n NodeImages of the bench.
func (b *bench) seen(n int) {
	b.Helper()
	b.until(func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("NodeImageList"))
		if err := b.cache.List(b.Context(), list, client.MatchingLabels{"bench": b.namespace}); err != nil {
			return err
		}
		if len(list.Items) != n {
			return fmt.Errorf("the cache has %d nodes", len(list.Items))
		}
		return nil
	})
}

func (b *bench) haveOne(i int, change ...func(*v1beta1.NodeImage)) {
	b.Helper()
	image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
		Name: b.node(i), Labels: map[string]string{"bench": b.namespace},
	}}
	for _, c := range change {
		c(image)
	}
	if err := b.client.Create(b.Context(), image); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = b.client.Delete(context.WithoutCancel(b.Context()), image) })
}

// create makes a job with nothing but what is required, for all nodes of the bench, and what change adds.
func (b *bench) create(name, image string, change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	b.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	job.Spec.Image = image
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"bench": b.namespace}},
	}
	for _, c := range change {
		c(job)
	}
	if err := b.client.Create(b.Context(), job); err != nil {
		b.Fatal(err)
	}
	return job
}

func parallel(n int32) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { p := intstr.FromInt32(n); j.Spec.Parallelism = &p }
}

func never(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.Never }

func secrets(names ...string) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = names }
}

// change patches the job.
func (b *bench) change(job *v1beta1.ImagePullJob, how func(*v1beta1.ImagePullJob)) {
	b.Helper()
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		b.Fatal(err)
	}
	before := job.DeepCopy()
	how(job)
	if err := b.client.Patch(b.Context(), job, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// until waits for something to be so.
func (b *bench) until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, b.patience, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		b.Fatalf("%v; last: %v\nrequests:\n%s", err, last, strings.Join(recent(b.requests.Take()), "\n"))
	}
}

// status waits for the counts of a job, as desired/active/succeeded/failed, and its message.
func (b *bench) status(job *v1beta1.ImagePullJob, counts, message string) {
	b.Helper()
	b.until(func() error {
		if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		s := job.Status
		got := fmt.Sprintf("%d/%d/%d/%d", s.Desired, s.Active, s.Succeeded, s.Failed)
		if got != counts || s.Message != message {
			return fmt.Errorf("%s %q, want %s %q", got, s.Message, counts, message)
		}
		return nil
	})
}

// gone waits until a job is no more.
func (b *bench) gone(job *v1beta1.ImagePullJob) {
	b.Helper()
	b.until(func() error {
		err := b.client.Get(b.Context(), client.ObjectKeyFromObject(job), job)
		if err == nil {
			return fmt.Errorf("it is there, held by %q", job.Finalizers)
		}
		return client.IgnoreNotFound(err)
	})
}

// unheld says whether a job is there, and without a finalizer.
func (b *bench) unheld(job *v1beta1.ImagePullJob) error {
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		return err
	}
	if len(job.Finalizers) > 0 {
		return fmt.Errorf("finalizers %q", job.Finalizers)
	}
	return nil
}

// quiet waits until nothing more is asked of the API server, and gives all that was.
func (b *bench) quiet() []string {
	b.Helper()
	var all []string
	last := time.Now()
	b.until(func() error {
		more := b.requests.Take()
		if all = append(all, more...); len(more) > 0 {
			last = time.Now()
		}
		if time.Since(last) < 400*time.Millisecond {
			return fmt.Errorf("requests go on")
		}
		return nil
	})
	return all
}

func (b *bench) nodeImage(n int) *v1beta1.NodeImage {
	b.Helper()
	image := &v1beta1.NodeImage{}
	if err := b.client.Get(b.Context(), types.NamespacedName{Name: b.node(n)}, image); err != nil {
		b.Fatal(err)
	}
	return image
}

// passes counts what the reconciler looked at.
type passes struct {
	mu  sync.Mutex
	all map[string]int
}

func (p *passes) count(job string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]int{}
	}
	p.all[job]++
}

// take gives the passes since the last time.
func (p *passes) take() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

// nodes pull what their NodeImages ask for, as the test wants them to behave.
type nodes struct {
	*bench
	mu sync.Mutex
	// behave says how the pull of an image ends, on a node ("node image") or on all ("image"): Pulling for not yet. It
	// succeeds where nothing is said.
	behave map[string]v1beta1.ImagePullPhase
	// pulling are the pulls under way, and most how many there were at once.
	pulling map[string]bool
	most    int
	// order is that in which pulls began.
	order []string
}

func (d *nodes) tell(what string, phase v1beta1.ImagePullPhase) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.behave[what] = phase
}

func (d *nodes) began() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.order)
}

func (d *nodes) add(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("daemon-" + d.namespace).For(&v1beta1.NodeImage{}).Complete(d)
}

// phase of a pull that goes on.
func (d *nodes) phase(node, image string) v1beta1.ImagePullPhase {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := node + " " + image
	if !slices.Contains(d.order, key) {
		d.order = append(d.order, key)
	}
	d.pulling[key] = true
	d.most = max(d.most, len(d.pulling))
	for _, k := range []string{key, image} {
		if p, told := d.behave[k]; told {
			return p
		}
	}
	return v1beta1.ImagePhaseSucceeded
}

// Reconcile does what the daemon of a node does: it writes how each pull goes.
func (d *nodes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if !strings.HasPrefix(request.Name, d.namespace+"-") {
		return ctrl.Result{}, nil
	}
	var image v1beta1.NodeImage
	if err := d.client.Get(ctx, request.NamespacedName, &image); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := image.DeepCopy()
	plan := imagepull.Work(&image, nil)
	image.Status = plan.Status
	after := ctrl.Result{}
	var ended []string
	for name, s := range image.Status.ImageStatuses {
		for i := range s.Tags {
			t := &s.Tags[i]
			if t.CompletionTime != nil {
				continue
			}
			key := imagepull.Reference{Name: name, Tag: t.Tag}.String()
			if t.Phase = d.phase(image.Name, key); t.Phase == v1beta1.ImagePhasePulling {
				after.RequeueAfter = 20 * time.Millisecond
				continue
			}
			ended = append(ended, image.Name+" "+key)
			t.CompletionTime = &metav1.Time{Time: time.Now()}
		}
	}
	// A place that the reconciler gives to another is to be free.
	d.mu.Lock()
	for _, key := range ended {
		delete(d.pulling, key)
	}
	d.mu.Unlock()
	if apiequality.Semantic.DeepEqual(before.Status, image.Status) {
		return after, nil
	}
	if err := d.client.Status().Patch(ctx, &image,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil //nolint:nilerr // it has changed meanwhile
	}
	return after, nil
}

// recent are the last few requests.
func recent(all []string) []string { return all[max(len(all)-40, 0):] }

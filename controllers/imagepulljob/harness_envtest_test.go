//go:build envtest

package imagepulljob_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with a reconciler, nodes of its own, and something that pulls on them.
type bench struct {
	*podbench.Bench

	// copies is the namespace that the nodes read secrets from.
	copies string
	nodes  *nodes
}

// start runs a test with others at the same time.
func start(t *testing.T, o imagepulljob.Options) *bench {
	t.Helper()
	b := newBench(t)
	b.Beside(b.nodes.add)
	b.reconcile(o, plain)
	return b
}

// plain is the client as it is.
func plain(c client.WithWatch) client.Client { return c }

// newBench has no reconciler yet, and nothing that pulls.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	o := cluster.Options{Scheme: podbench.Scheme(t)}
	for _, crd := range []string{"imagepulljobs", "nodeimages", "clonesets", "statefulsets"} {
		o.CRDDirs = append(o.CRDDirs, "../../config/crd/bases/apps.kruise.io_"+crd+".yaml")
	}
	c := cluster.Start(t, o)
	b := &bench{Bench: podbench.On(t, c, o.Scheme), copies: c.Namespace(t)}
	b.Cache.ByObject = map[client.Object]cache.ByObject{&v1beta1.NodeImage{}: {
		Label: labels.SelectorFromSet(labels.Set{"bench": b.Namespace}),
	}}
	b.nodes = &nodes{bench: b, behave: map[string]v1beta1.ImagePullPhase{}, pulling: map[string]bool{}}
	return b
}

// reconcile starts a reconciler of the namespace, and gives what stops it. It stops with the test at the latest.
func (b *bench) reconcile(o imagepulljob.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	o.SecretNamespace = b.copies
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := imagepulljob.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

// node is the name of one of the bench's nodes.
func (b *bench) node(n int) string { return fmt.Sprintf("%s-%03d", b.Namespace, n) }

// have makes NodeImages of the nodes from 1 to n. On a busy machine the caches may show them later than a job waits for
// its nodes.
func (b *bench) have(n int) {
	b.Helper()
	for i := range n {
		b.haveOne(i + 1)
	}
	b.Still()
}

func (b *bench) haveOne(i int) {
	b.Helper()
	image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
		Name: b.node(i), Labels: map[string]string{"bench": b.Namespace},
	}}
	if err := b.Client.Create(b.Context(), image); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = b.Client.Delete(context.WithoutCancel(b.Context()), image) })
}

// create makes a job with nothing but what is required, for all nodes of the bench, and what change adds.
func (b *bench) create(name, image string, change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	b.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	job.Spec.Image = image
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"bench": b.Namespace}},
	}
	for _, c := range change {
		c(job)
	}
	if err := b.Client.Create(b.Context(), job); err != nil {
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
	if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		b.Fatal(err)
	}
	before := job.DeepCopy()
	how(job)
	if err := b.Client.Patch(b.Context(), job, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// status waits for the counts of a job, as desired/active/succeeded/failed, and its message.
func (b *bench) status(job *v1beta1.ImagePullJob, counts, message string) {
	b.Helper()
	b.Until(func() error {
		if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(job), job); err != nil {
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
	b.Until(func() error {
		err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(job), job)
		if err == nil {
			return fmt.Errorf("it is there, held by %q", job.Finalizers)
		}
		return client.IgnoreNotFound(err)
	})
}

// unheld says whether a job is there, and without a finalizer.
func (b *bench) unheld(job *v1beta1.ImagePullJob) error {
	if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		return err
	}
	if len(job.Finalizers) > 0 {
		return fmt.Errorf("finalizers %q", job.Finalizers)
	}
	return nil
}

func (b *bench) nodeImage(n int) *v1beta1.NodeImage {
	b.Helper()
	image := &v1beta1.NodeImage{}
	if err := b.Client.Get(b.Context(), types.NamespacedName{Name: b.node(n)}, image); err != nil {
		b.Fatal(err)
	}
	return image
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
	return ctrl.NewControllerManagedBy(mgr).Named("daemon-" + d.Namespace).For(&v1beta1.NodeImage{}).Complete(d)
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
	var image v1beta1.NodeImage
	if err := d.Client.Get(ctx, request.NamespacedName, &image); err != nil {
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
	if err := d.Client.Status().Patch(ctx, &image,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil //nolint:nilerr // it has changed meanwhile
	}
	return after, nil
}

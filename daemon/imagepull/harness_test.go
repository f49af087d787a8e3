package imagepull

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/bubbletest"
)

// world is a node with its NodeImage, in a bubble whose time passes by itself.
type world struct {
	*testing.T
	store  *store
	images *images
	// runtime is what pulls: images, if nothing else is said.
	runtime Images
	events  *events
	options Options
	// end ends the process on the node, as a manager would. It is called at the end of each test.
	end func()
	// settle lets everything happen that can happen now.
	settle func()
}

// inWorld runs a test in a world. Nothing runs on the node before begin.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.settle = bubbletest.Wait
		defer func() { w.end() }()
		test(w)
	})
}

// newWorld has no bubble yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, store: newStore(), images: newImages(), events: &events{}, end: func() {}, settle: func() {}}
	w.options, w.runtime = Options{Recorder: w.events, Secrets: w.store.client()}, w.images
	return w
}

// begin starts the process on the node.
func (w *world) begin() *Reconciler {
	w.Helper()
	r, err := New(w.store.client(), "n1", w.runtime, w.options)
	if err != nil {
		w.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](parts.LeastPause, parts.MostPause))
	if err := r.api.Start(w.Context(), queue); err != nil {
		w.Fatal(err)
	}
	w.store.watch(func() { queue.Add(r.request()) })
	ctx, cancel := context.WithCancel(w.Context())
	var all sync.WaitGroup
	all.Add(1)
	go func() {
		defer all.Done()
		reconcileAll(ctx, r, queue)
	}()
	all.Add(1)
	go func() {
		defer all.Done()

		if err := r.keep(ctx); err != nil {
			w.Error(err)
		}
	}()
	w.end = sync.OnceFunc(func() {
		cancel()
		queue.ShutDown()
		all.Wait()
	})
	queue.Add(r.request())
	w.settle()
	return r
}

func reconcileAll(ctx context.Context, r *Reconciler, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for {
		request, ended := queue.Get()
		if ended {
			return
		}
		result, err := r.Reconcile(ctx, request)
		switch {
		case err != nil:
			queue.AddRateLimited(request)
		case result.RequeueAfter > 0:
			queue.Forget(request)
			queue.AddAfter(request, result.RequeueAfter)
		default:
			queue.Forget(request)
		}
		queue.Done(request)
	}
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	w.settle()
}

// spec changes what the NodeImage asks for.
func (w *world) spec(change ...func(*v1beta1.NodeImage)) {
	w.store.change(func(n *v1beta1.NodeImage) {
		for _, c := range change {
			c(n)
		}
	})
	w.settle()
}

// asks adds a tag, or changes it.
func asks(image string, version int64, change ...func(*v1beta1.ImageTagSpec)) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		ref := mustParse(image)
		i := n.Spec.Images[ref.Name]
		t := v1beta1.ImageTagSpec{
			Tag: ref.Tag, Version: version, PullPolicy: &v1beta1.ImageTagPullPolicy{},
			OwnerReferences: []corev1.ObjectReference{{Kind: "ImagePullJob", Namespace: "shop", Name: "job"}},
		}
		for _, c := range change {
			c(&t)
		}
		i.Tags = slices.DeleteFunc(i.Tags, func(t v1beta1.ImageTagSpec) bool { return t.Tag == ref.Tag })
		i.Tags = append(i.Tags, t)
		if n.Spec.Images == nil {
			n.Spec.Images = map[string]v1beta1.ImageSpec{}
		}
		n.Spec.Images[ref.Name] = i
	}
}

func leaves(name string) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) { delete(n.Spec.Images, name) }
}

func logsInWith(name string, secrets ...string) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		i := n.Spec.Images[name]
		for _, s := range secrets {
			i.PullSecrets = append(i.PullSecrets, v1beta1.ReferenceObject{Namespace: "config", Name: s})
		}
		n.Spec.Images[name] = i
	}
}

func ifNotPresent(t *v1beta1.ImageTagSpec) { t.ImagePullPolicy = v1beta1.PullIfNotPresent }

func limited(backoff int32) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.PullPolicy.BackoffLimit = &backoff }
}

func within(timeout int32) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.PullPolicy.TimeoutSeconds = &timeout }
}

func before(deadline int64) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) { t.PullPolicy.ActiveDeadlineSeconds = &deadline }
}

func mustParse(image string) imagepull.Reference {
	ref, err := imagepull.Parse(image)
	if err != nil {
		panic(err)
	}
	return ref
}

// tag is the status of an image.
func (w *world) tag(image string) v1beta1.ImageTagStatus {
	w.Helper()
	ref := mustParse(image)
	for _, t := range w.store.stored().Status.ImageStatuses[ref.Name].Tags {
		if t.Tag == ref.Tag {
			return t
		}
	}
	return v1beta1.ImageTagStatus{}
}

// told is what a status says of all tags, shortly.
func (w *world) told() string {
	var all []string
	for name, image := range w.store.stored().Status.ImageStatuses {
		for _, t := range image.Tags {
			all = append(all, fmt.Sprintf("%s v%d %s", imagepull.Reference{Name: name, Tag: t.Tag}, t.Version, t.Phase))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// wants says what the status must be.
func (w *world) wants(told string) {
	w.Helper()
	if got := w.told(); got != told {
		w.Errorf("the status tells %q, want %q", got, told)
	}
}

package containerrestart

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
)

var (
	errDead  = errors.New("the process is dead")
	errFault = errors.New("something went wrong on the way")
)

// mostInRow keeps a request from being given up by the manager because too much goes wrong.
const mostInRow = 3

// daemon is one process: the real reconciler with a queue and one worker, a cache that lags behind, and connections
// that end when it dies.
type daemon struct {
	*world

	reconciler *Reconciler
	queue      workqueue.TypedRateLimitingInterface[reconcile.Request]
	cancel     context.CancelFunc
	dead       bool
	inRow      int // failures
	// seen is its cache, which holds active requests only.
	seen map[string]*request
	done sync.WaitGroup
}

// birth starts a daemon. The world's lock is held.
func (w *world) birth(ctx context.Context) {
	if ctx.Err() != nil {
		return // the world has ended
	}
	d := &daemon{world: w, seen: map[string]*request{}}
	w.successor = func() { w.birth(ctx) }
	w.say("daemon: starts")
	dying, cancel := context.WithCancel(ctx)
	d.cancel = cancel
	d.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](parts.LeastPause, parts.MostPause))
	r, err := New(apiOf{d: d}, here, []runtimeOf{{d}}, w.options)
	if err != nil {
		panic(err)
	}
	d.reconciler = r
	if err := r.api.Start(dying, d.queue); err != nil {
		panic(err)
	}
	for name, one := range w.stored {
		if one.Labels[v1beta1.ContainerRecreateRequestActiveKey] == "true" {
			d.seen[name] = one
		}
	}
	w.now = d
	d.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: podName}})
	d.done.Add(1)
	go func() {
		defer d.done.Done()

		if err := r.workers.Work(dying); err != nil {
			panic(err)
		}
	}()
	d.done.Add(1)
	go func() {
		defer d.done.Done()
		d.worker(dying)
	}()
	d.done.Add(1)
	go func() {
		defer d.done.Done()

		<-dying.Done()
		d.queue.ShutDown()
	}()
}

func (d *daemon) worker(ctx context.Context) {
	for {
		item, shut := d.queue.Get()
		if shut {
			return
		}
		result, err := d.reconciler.Reconcile(ctx, item)
		switch {
		case err != nil:
			d.queue.AddRateLimited(item)
		default:
			d.queue.Forget(item)
			if result.RequeueAfter > 0 {
				d.queue.AddAfter(item, result.RequeueAfter)
			}
		}
		d.queue.Done(item)
	}
}

// learn has the cache know a request after a while. The world's lock is held.
func (d *daemon) learn(r *request) {
	time.AfterFunc(time.Duration(d.rand.Intn(d.lag+1))*time.Millisecond, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if old := d.seen[r.Name]; old == nil || versionOf(old) < versionOf(r) {
			d.seen[r.Name] = r
		}
		d.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: podName}})
	})
}

func versionOf(r *request) int {
	n, err := strconv.Atoi(r.ResourceVersion)
	if err != nil {
		panic(err)
	}
	return n
}

// reach is asked before and after each call. It may fail, and it may be the last thing that the daemon does.
func (d *daemon) reach() error {
	switch {
	case d.dead:
		return errDead
	case d.risk > 0 && d.rand.Intn(d.risk) == 0:
		d.die()
		return errDead
	case d.risk > 0 && d.inRow < mostInRow && d.rand.Intn(d.risk) == 0:
		d.failures++
		d.inRow++
		return errFault
	}
	d.inRow = 0
	return nil
}

// die ends the process where it stands, and has another one start. The world's lock is held.
func (d *daemon) die() {
	d.say("daemon: dies")
	d.dead = true
	d.deaths++
	d.cancel()
	time.AfterFunc(time.Duration(d.rand.Intn(2000))*time.Millisecond, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.successor()
	})
}

// apiOf is what a daemon sees of the API server: requests through its cache, unless it asks past it.
type apiOf struct {
	client.Client

	d *daemon
}

func (a apiOf) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	if err := a.d.reach(); err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	if want := byPod + "=" + podName; o.FieldSelector == nil || o.FieldSelector.String() != want {
		return fmt.Errorf("want requests of one pod, not %v", o.FieldSelector)
	}
	for _, r := range a.d.seen {
		if r.Labels[v1beta1.ContainerRecreateRequestActiveKey] == "true" {
			to := list.(*unstructured.UnstructuredList)
			to.Items = append(to.Items, *untyped(r))
		}
	}
	return nil
}

func (a apiOf) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	if err := a.d.reach(); err != nil {
		return err
	}
	if pod, ok := o.(*corev1.Pod); ok {
		a.d.pod.DeepCopyInto(pod)
		return nil
	}
	r := a.d.stored[key.Name]
	if r == nil {
		return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("containerrecreaterequests").GroupResource(), key.Name)
	}
	o.(*unstructured.Unstructured).Object = untyped(r).Object
	return nil
}

func (a apiOf) Status() client.SubResourceWriter { return statusOf{d: a.d} }

type statusOf struct {
	client.SubResourceWriter

	d *daemon
}

func (s statusOf) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.reach(); err != nil {
		return err
	}
	body, err := p.Data(o)
	if err != nil {
		return err
	}
	r, err := s.d.patch(o.GetName(), body)
	if apierrors.IsConflict(err) {
		s.d.conflicts++
	}
	if err != nil {
		return err
	}
	s.d.writes[r.Name]++
	o.(*unstructured.Unstructured).Object = untyped(r).Object
	return s.d.reach()
}

func untyped(r *request) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		panic(err)
	}
	raw := &unstructured.Unstructured{Object: content}
	raw.SetGroupVersionKind(gvk())
	return raw
}

// runtimeOf is a daemon's connection to the runtime.
type runtimeOf struct{ *daemon }

func (runtimeOf) Name() string { return engine }

// away makes a failure one of the connection.
func away(err error) error {
	if errors.Is(err, errFault) {
		return fmt.Errorf("%w: %w", cri.ErrUnavailable, err)
	}
	return err
}

func (r runtimeOf) Containers(_ context.Context, q cri.Query) ([]cri.Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if err := r.reach(); err != nil {
		return nil, away(err)
	}
	if q.PodUID != string(podIs) {
		return nil, fmt.Errorf("want containers of one pod, not %+v", q)
	}
	var all []cri.Container
	for i := range r.ran {
		all = append([]cri.Container{r.ran[i]}, all...)
	}
	return all, nil
}

func (runtimeOf) Sandbox(context.Context, string) (cri.Sandbox, error) {
	return cri.Sandbox{}, errors.New("nobody needs it here")
}

func (r runtimeOf) Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error) {
	name := c.Args[1]
	r.mu.Lock()
	r.calls++
	err := r.reach()
	took := time.Duration(r.ways[name].hook) * time.Second
	if err == nil {
		r.say("runtime: runs the hook of %s", id)
		r.hooks[name]++
	}
	r.mu.Unlock()
	if err != nil {
		return cri.Output{}, away(err)
	}
	drained := time.NewTimer(took)
	defer drained.Stop()
	select {
	case <-drained.C:
		return cri.Output{}, nil
	case <-ctx.Done():
		return cri.Output{}, ctx.Err()
	}
}

func (r runtimeOf) Stop(ctx context.Context, id string, _ time.Duration) error {
	r.mu.Lock()
	r.calls++
	err := r.reach()
	r.mu.Unlock()
	if err != nil {
		return away(err)
	}
	// It asks the container to end at once, and that cannot be taken back.
	ended := make(chan error, 1)
	time.AfterFunc(time.Second, func() { ended <- r.end(id) })
	select {
	case err := <-ended:
		r.mu.Lock()
		defer r.mu.Unlock()
		if lost := r.reach(); lost != nil {
			return away(lost)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end lets a container end.
func (w *world) end(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.ran {
		c := &w.ran[i]
		switch {
		case c.ID != id:
		case w.ways[c.Name].unstoppable:
			return errors.New("it does not stop")
		case c.State == cri.Running:
			c.State, c.FinishedAt, c.ExitCode = cri.Exited, time.Now(), 143
			w.stops[c.Name]++
			w.say("runtime: %s has stopped", id)
		}
	}
	return nil
}

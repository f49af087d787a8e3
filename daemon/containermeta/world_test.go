package containermeta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

const (
	here      = "node-1"
	namespace = "shop"
	podName   = "web"
)

// world is an API server with one pod and its node, in the time of a bubble. Daemons run in it, one after the other.
type world struct {
	mu       sync.Mutex
	rand     *rand.Rand
	began    time.Time
	pod      *corev1.Pod
	version  int
	watching []*watch.RaceFreeFakeWatcher
	late     time.Duration // that the kubelet may be behind
	node     *nodetest.Node
	now      *daemon
	// successor is born after a death.
	successor        func()
	risk             int // of a call that fails or is the last, one in so many; 0 for none
	deaths, failures int
	writes           int // of daemons
	lines            []string
}

// fedBy is a variable that comes from an annotation.
func fedBy(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: "metadata.annotations['" + key + "']",
	}}}
}

func newWorld(seed int64, ways map[string]nodetest.Way) *world {
	w := &world{rand: rand.New(rand.NewSource(seed)), began: time.Now(), node: nodetest.New(here, ways)}
	w.pod = &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: podName, UID: "u1", Annotations: map[string]string{"conf": "0"}, ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: here, RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers: []corev1.Container{
				{Name: "app", Env: []corev1.EnvVar{fedBy("CONF", "conf")}},
				{Name: "log", Env: []corev1.EnvVar{{Name: "LEVEL", Value: "1"}, fedBy("CONF", "conf")}},
				{Name: "mesh"},
			},
		},
	}
	w.version = 1
	return w
}

func (w *world) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%7.2f  %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...)))
}

func (w *world) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// change is one write of a user.
func (w *world) change(how func(*corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pod.DeepCopy()
	how(pod)
	w.store(pod)
}

// store keeps a pod, and lets everybody know. The world's lock is held.
func (w *world) store(pod *corev1.Pod) {
	w.version++
	pod.ResourceVersion = strconv.Itoa(w.version)
	w.pod = pod
	if w.late == 0 {
		w.show()
	} else {
		time.AfterFunc(time.Duration(w.rand.Int63n(int64(w.late))), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.show()
		})
	}
	if w.now != nil {
		w.now.learn(pod)
	}
}

// show has the kubelet see the pod. The world's lock is held.
func (w *world) show() {
	for _, to := range w.watching {
		to.Modify(w.pod.DeepCopy())
	}
}

// complete says whether an in-place update would find what it waits for.
func (w *world) complete() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var set kruise.RuntimeContainerMetaSet
	if json.Unmarshal([]byte(w.pod.Annotations[kruise.RuntimeContainerMetaKey]), &set) != nil ||
		len(set.Containers) != len(w.pod.Spec.Containers) {
		return false
	}
	for i, c := range w.pod.Spec.Containers {
		want, err := inplace.EnvHash(&c, w.pod.Labels, w.pod.Annotations)
		meta, status := set.Containers[i], w.pod.Status.ContainerStatuses[i]
		if err != nil || meta.ContainerID != status.ContainerID || meta.Hashes.ExtractedEnvFromMetadataHash != want ||
			!status.Ready {
			return false
		}
	}
	return true
}

var (
	errDead  = errors.New("the process is dead")
	errFault = errors.New("something went wrong on the way")
)

// daemon is one process: the real reconciler with a queue and one worker, a cache that lags behind, and connections
// that end when it dies.
type daemon struct {
	*world

	reconciler *Reconciler
	queue      workqueue.TypedRateLimitingInterface[reconcile.Request]
	cancel     context.CancelFunc
	dead       bool
	seen       *corev1.Pod
	done       sync.WaitGroup
}

// birth starts a daemon. The world's lock is held.
func (w *world) birth(ctx context.Context) {
	if ctx.Err() != nil {
		return // the world has ended
	}
	w.say("daemon: starts")
	d := &daemon{world: w}
	w.successor = func() { w.birth(ctx) }
	dying, cancel := context.WithCancel(ctx)
	d.cancel = cancel
	d.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](parts.LeastPause, parts.MostPause))
	r, err := New(apiOf{world: w, d: d}, here, []runtimeOf{{w.node, d}}, Options{Live: apiOf{world: w, d: d, live: true}})
	if err != nil {
		panic(err)
	}
	d.reconciler = r
	if err := r.api.Start(dying, d.queue); err != nil {
		panic(err)
	}
	w.now = d
	d.see(w.pod)
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
		d.worker(dying)()
	}()
	d.done.Add(1)
	go func() {
		defer d.done.Done()

		<-dying.Done()
		d.queue.ShutDown()
	}()
}

func (d *daemon) worker(ctx context.Context) func() {
	return func() {
		for {
			item, shut := d.queue.Get()
			if shut {
				return
			}
			result, err := d.reconciler.Reconcile(ctx, item)
			if err != nil {
				d.queue.AddRateLimited(item)
			} else {
				d.queue.Forget(item)
			}
			if result.RequeueAfter > 0 {
				d.queue.AddAfter(item, result.RequeueAfter)
			}
			d.queue.Done(item)
		}
	}
}

// learn has the cache know the pod after a while. The world's lock is held.
func (d *daemon) learn(pod *corev1.Pod) {
	time.AfterFunc(time.Duration(d.rand.Intn(300))*time.Millisecond, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if versionOf(d.seen) < versionOf(pod) {
			d.see(pod)
		}
	})
}

func (d *daemon) see(pod *corev1.Pod) {
	was, events := d.seen, d.reconciler.podEvents()
	d.seen = pod
	if was == nil && events.Create(event.CreateEvent{Object: pod}) ||
		was != nil && events.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: pod}) {
		d.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
	}
}

func versionOf(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.ResourceVersion)
	if err != nil {
		panic(err)
	}
	return n
}

// reach is asked before and after each call. It may fail, and it may be the last thing that the daemon does.
func (d *daemon) reach() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.dead:
		return errDead
	case d.risk > 0 && d.rand.Intn(d.risk) == 0:
		d.say("daemon: dies")
		d.dead = true
		d.deaths++
		d.cancel()
		time.AfterFunc(time.Duration(d.rand.Intn(2000))*time.Millisecond, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.successor()
		})
		return errDead
	case d.risk > 0 && d.rand.Intn(d.risk) == 0:
		d.failures++
		return errFault
	}
	return nil
}

// apiOf is what the kubelet, or a daemon, sees of the API server.
type apiOf struct {
	client.WithWatch
	*world

	d    *daemon // nil for the kubelet
	live bool
}

func (a apiOf) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if err := a.d.reach(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := a.d.seen
	if a.live {
		pod = a.pod
	}
	pod.DeepCopyInto(o.(*corev1.Pod))
	return nil
}

func (a apiOf) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	to := watch.NewRaceFreeFake()
	a.watching = append(a.watching, to)
	to.Add(a.pod.DeepCopy())
	return to, nil
}

func (a apiOf) Status() client.SubResourceWriter { return statusOf{apiOf: a} }

type statusOf struct {
	client.SubResourceWriter

	apiOf
}

// Patch does what the API server does with a patch of the status: annotations are accepted, too.
func (s statusOf) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	body, err := p.Data(o)
	if err != nil {
		return err
	}
	if s.d != nil {
		if err := s.d.reach(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	text, err := json.Marshal(s.pod)
	if err == nil {
		text, err = strategicpatch.StrategicMergePatch(text, body, corev1.Pod{})
	}
	pod := &corev1.Pod{}
	if err == nil {
		err = json.Unmarshal(text, pod)
	}
	if err == nil {
		if s.d != nil {
			s.writes++
			s.say("daemon: tells %s", pod.Annotations[kruise.RuntimeContainerMetaKey])
		}
		s.store(pod)
		pod.DeepCopyInto(o.(*corev1.Pod))
	}
	s.mu.Unlock()
	if err == nil && s.d != nil {
		return s.d.reach()
	}
	return err
}

// runtimeOf is a daemon's connection to the runtime.
type runtimeOf struct {
	*nodetest.Node

	d *daemon
}

// away makes a failure one of the connection.
func (r runtimeOf) away() error {
	if err := r.d.reach(); err != nil {
		return fmt.Errorf("%w: %w", cri.ErrUnavailable, err)
	}
	return nil
}

func (r runtimeOf) Containers(ctx context.Context, q cri.Query) ([]cri.Container, error) {
	if err := r.away(); err != nil {
		return nil, err
	}
	return r.Node.Containers(ctx, q)
}

func (r runtimeOf) Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error) {
	if err := r.away(); err != nil {
		return cri.Output{}, err
	}
	out, err := r.Node.Exec(ctx, id, c)
	if err == nil {
		err = r.away()
	}
	return out, err
}

func (r runtimeOf) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := r.away(); err != nil {
		return err
	}
	err := r.Node.Stop(ctx, id, grace)
	if err == nil {
		err = r.away()
	}
	return err
}

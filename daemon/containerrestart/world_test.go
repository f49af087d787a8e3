package containerrestart

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

const here = "node-1"

// web is the name of the pod.
func web() types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: "web"} }

// world has a manager, and one pod with the containers app, log and mesh.
type world struct {
	*nodetest.World

	user *rand.Rand // of what is asked for
	ways map[string]way

	mu         sync.Mutex
	hooks      map[string]int // that have run, by container
	reconciler *Reconciler    // of the last daemon
}

// way is how a container behaves.
type way struct {
	hook, slow  time.Duration // that its hook takes, and that it takes to be ready
	unstoppable bool
}

func newWorld(seed int64, ways map[string]way) *world {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	w := &world{user: rand.New(rand.NewSource(-seed)), ways: ways, hooks: map[string]int{}}
	if ways == nil {
		w.ways = map[string]way{}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Spec: corev1.PodSpec{
			NodeName: here, RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: ptr.To(int64(30)),
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: kruise.KruisePodReadyConditionType, Status: corev1.ConditionTrue},
		}},
	}
	behave := map[string]nodetest.Way{}
	for _, name := range []string{"app", "log", "mesh"} {
		if ways == nil {
			w.ways[name] = way{
				hook: time.Duration(w.user.Intn(5)) * time.Second, slow: time.Duration(w.user.Intn(4)) * time.Second,
				unstoppable: w.user.Intn(8) == 0,
			}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain", name}}},
		}})
		behave[name] = nodetest.Way{
			Slow: w.ways[name].slow,
			Exec: func(ctx context.Context, _ []string) (cri.Output, error) { return cri.Output{}, w.drain(ctx, name) },
			Stop: func(context.Context) error {
				time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble; that it is to end cannot be taken back
				if w.ways[name].unstoppable {
					return errors.New("it does not stop")
				}
				return nil
			},
		}
	}
	w.World = nodetest.NewWorld(seed, scheme, nodetest.New(here, behave))
	w.Start, w.Learned = w.begin, func(d *nodetest.Daemon, _, o client.Object) {
		if _, ok := o.(*request); ok {
			d.Queue.Add(reconcile.Request{NamespacedName: web()})
		}
	}
	if err := w.Put(pod); err != nil {
		panic(err)
	}
	return w
}

// drain is the hook of a container.
func (w *world) drain(ctx context.Context, name string) error {
	w.mu.Lock()
	w.hooks[name]++
	w.mu.Unlock()
	drained := time.NewTimer(w.ways[name].hook)
	defer drained.Stop()
	select {
	case <-drained.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts the real reconciler. Its cache has active requests only; what it asks past the cache is as it is.
func (w *world) begin(ctx context.Context, d *nodetest.Daemon) *nodetest.Process {
	api := interceptor.NewClient(w.Server, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption,
		) error {
			if err := d.Reach(); err != nil {
				return err
			}
			return w.Get(ctx, key, o)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := d.Reach(); err != nil {
				return err
			}
			var o client.ListOptions
			o.ApplyOptions(opts)
			if want := byPod + "=web"; o.FieldSelector == nil || o.FieldSelector.String() != want {
				return fmt.Errorf("want requests of one pod, not %v", o.FieldSelector)
			}
			for _, o := range d.Seen() {
				if r, ok := o.(*request); ok && r.Labels[v1beta1.ContainerRecreateRequestActiveKey] == "true" {
					to := list.(*unstructured.UnstructuredList)
					to.Items = append(to.Items, untyped(r))
				}
			}
			return nil
		},
		SubResourcePatch: d.PatchStatus,
	})
	r, err := New(api, here, []nodetest.Connection{d.Runtime()}, Options{})
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	w.reconciler = r
	w.mu.Unlock()
	p := nodetest.StartProcess(ctx, r, r.api.Start, r.workers.Work)
	p.Queue.Add(reconcile.Request{NamespacedName: web()})
	return p
}

func untyped(r *request) unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		panic(err)
	}
	raw := unstructured.Unstructured{Object: content}
	raw.SetGroupVersionKind(gvk())
	return raw
}

// requests are those that are stored.
func (w *world) requests() []*request {
	var list v1beta1.ContainerRecreateRequestList
	if err := w.List(context.Background(), &list); err != nil {
		panic(err)
	}
	var all []*request
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

func (w *world) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	if err := w.Get(context.Background(), web(), pod); err != nil {
		panic(err)
	}
	return pod
}

// manage does the manager's part until the context ends, not in the moment in which others do something.
func (w *world) manage(ctx context.Context) {
	time.Sleep(250 * time.Millisecond) //nolint:forbidigo // the time of the bubble
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			all := w.requests()
			for _, r := range all {
				plan := containerrestart.Supervise(containerrestart.Input{Request: r, Pod: w.pod(), Others: all, Now: time.Now()})
				if err := w.carryOut(r, plan); err != nil && !apierrors.IsConflict(err) {
					panic(err)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

func (w *world) carryOut(r *request, plan containerrestart.Plan) error {
	ctx := context.Background()
	const finalizers = `{"metadata":{"finalizers":%s}}`
	if plan.AddFinalizer {
		body := fmt.Sprintf(finalizers, `["`+v1beta1.ContainerRecreateRequestUnreadyAcquiredKey+`"]`)
		return w.Patch(ctx, r, client.RawPatch(types.MergePatchType, []byte(body)))
	}
	if plan.Pod != nil {
		body, err := plan.Pod.Data()
		if err != nil {
			return err
		}
		if err := w.SubResource(plan.Pod.Subresource).Patch(ctx, w.pod(), client.RawPatch(plan.Pod.Type, body)); err != nil {
			return err
		}
	}
	if plan.Write != nil {
		body, err := plan.Write.Data()
		if err != nil {
			return err
		}
		return w.Status().Patch(ctx, r, client.RawPatch(plan.Write.Type, body))
	}
	if plan.RemoveFinalizer {
		if err := w.Patch(ctx, r, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, finalizers, "null"))); err != nil {
			return err
		}
	}
	if plan.RemoveActive {
		body := `{"metadata":{"labels":{"` + v1beta1.ContainerRecreateRequestActiveKey + `":null}}}`
		return w.Patch(ctx, r, client.RawPatch(types.MergePatchType, []byte(body)))
	}
	return nil
}

// create admits and stores a request.
func (w *world) create(name string, change func(*request)) {
	ask := &request{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: "web", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}, {Name: "log"}},
			Strategy: &v1beta1.ContainerRecreateRequestStrategy{},
		},
	}
	if change != nil {
		change(ask)
	}
	r, faults := containerrestart.Admit(ask, w.pod(), &corev1.Node{})
	if len(faults) > 0 {
		panic(faults.ToAggregate())
	}
	r.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	if err := w.Put(r); err != nil {
		panic(err)
	}
	w.Say("user: created %s", name)
}

// told is a status without what depends on the moment.
func told(r *request) string {
	lines := []string{string(r.Status.Phase) + " " + r.Status.Message}
	for _, s := range r.Status.ContainerRecreateStates {
		lines = append(lines, fmt.Sprintf("%s %s %v %s", s.Name, s.Phase, s.IsKilled, s.Message))
	}
	return strings.Join(lines, "; ")
}

// ended says whether all requests have, and were cleaned up after.
func (w *world) ended() bool {
	w.mu.Lock()
	known := w.reconciler.workers.Known()
	w.mu.Unlock()
	return len(known) == 0 && !slices.ContainsFunc(w.requests(), func(r *request) bool {
		return !over(r) || r.Labels[v1beta1.ContainerRecreateRequestActiveKey] != ""
	})
}

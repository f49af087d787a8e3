//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/lifecycle"
)

const (
	// nodeName is where all pods are.
	nodeName = "node-1"
	// tick is how often the node looks at a pod with an active request. That asks nothing of the API server.
	tick = 50 * time.Millisecond
)

// node is one with a runtime, a kubelet and, once it serves, a daemon. What runs is kept here and not in the pods, so
// that nothing that a client writes can change it. The kubelet starts again what has ended, the daemon does what
// containerrestart.Next says.
type node struct {
	client    client.Client
	namespace string

	mu      sync.Mutex
	serving bool
	// holding lets kills begin and not end.
	holding  bool
	running  map[types.UID][]containerrestart.Container
	attempts []containerrestart.Attempt
	underWay []stopping
	// stopped is when containers were stopped, by the names of request and container.
	stopped map[string][]time.Time
	// crashed are pods whose containers the test ended.
	crashed chan event.GenericEvent
}

// stopping is a kill that has begun.
type stopping struct {
	request *request
	kill    containerrestart.Kill
}

func newNode(b *bench) *node {
	n := &node{
		namespace: b.Namespace, running: map[types.UID][]containerrestart.Container{}, stopped: map[string][]time.Time{},
		crashed: make(chan event.GenericEvent, 100),
	}
	b.Beside(func(mgr ctrl.Manager) error {
		var err error
		// What no request can be is stored, too: untyped, it stops no reconciler.
		n.client, err = client.New(b.Config, client.Options{
			Scheme: b.Scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache(), Unstructured: true},
		})
		if err != nil {
			return err
		}
		ofPod := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: podName(o)}}}
		})
		return ctrl.NewControllerManagedBy(mgr).Named("node").For(&corev1.Pod{}).Watches(stored.Untyped(gvk()), ofPod).
			WatchesRawSource(source.Channel(n.crashed, &handler.EnqueueRequestForObject{})).
			WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).Complete(n)
	})
	return n
}

// serve starts the daemon.
func (n *node) serve() { n.set(func() { n.serving = true }) }

// hold has kills not end until they are released.
func (n *node) hold(is bool) { n.set(func() { n.holding = is }) }

// crash ends a container.
func (n *node) crash(pod *corev1.Pod, container string) {
	n.set(func() {
		if c := containerIn(n.running[pod.UID], container); c != nil {
			end(c)
		}
	})
	n.crashed <- event.GenericEvent{Object: pod}
}

// set changes the node between two passes.
func (n *node) set(how func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	how()
}

// began is how many kills have begun and not ended.
func (n *node) began() (count int) {
	n.set(func() { count = len(n.underWay) })
	return count
}

// kills is when a container was stopped for a request.
func (n *node) kills(r *request, container string) (at []time.Time) {
	n.set(func() { at = slices.Clone(n.stopped[r.Name+"/"+container]) })
	return at
}

// Reconcile lets time pass for one pod.
func (n *node) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	switch err := n.client.Get(ctx, name.NamespacedName, pod); {
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, err
	case err != nil:
		pod = nil
	case pod.DeletionTimestamp != nil:
		err := n.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if pod != nil {
		n.run(pod)
		n.stop(pod.UID)
		if err := n.tell(ctx, pod); err != nil {
			return ctrl.Result{}, err
		}
	}
	active, err := n.work(ctx, name.Name, pod)
	if err != nil || pod == nil || !active {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: tick}, nil
}

// run starts what does not run.
func (n *node) run(pod *corev1.Pod) {
	now := time.Now()
	if n.running[pod.UID] == nil {
		for _, c := range pod.Spec.Containers {
			n.running[pod.UID] = append(n.running[pod.UID], started(pod, c.Name, 0, now.Add(-time.Hour)))
		}
	}
	for i := range n.running[pod.UID] {
		if c := &n.running[pod.UID][i]; c.State == containerrestart.StateExited {
			*c = started(pod, c.Name, c.RestartCount+1, now)
		}
	}
}

func started(pod *corev1.Pod, name string, count int32, at time.Time) containerrestart.Container {
	return containerrestart.Container{
		Name: name, ID: fmt.Sprintf("fake://%s-%s-%d", pod.UID, name, count), RestartCount: count,
		State: containerrestart.StateRunning, Created: at, Started: at,
	}
}

func end(c *containerrestart.Container) {
	c.State, c.ExitCode, c.Reason = containerrestart.StateExited, 143, "Error"
}

// stop ends the kills in a pod that have begun before.
func (n *node) stop(pod types.UID) {
	if n.holding {
		return
	}
	n.underWay = slices.DeleteFunc(n.underWay, func(s stopping) bool {
		if podUID(s.request) != pod {
			return false
		}
		if c := containerIn(n.running[pod], s.kill.Container); c != nil && c.ID == s.kill.ContainerID &&
			c.State == containerrestart.StateRunning {
			end(c)
			key := s.request.Name + "/" + c.Name
			n.stopped[key] = append(n.stopped[key], time.Now())
		}
		n.done(s.request.UID, s.kill.Container, nil)
		return true
	})
}

// done notes what became of the attempts for a request.
func (n *node) done(request types.UID, container string, err error) {
	for i := range n.attempts {
		if a := &n.attempts[i]; a.Request == request && !a.Done && (container == "" || a.Container == container) {
			a.Done, a.Err = true, err
		}
	}
}

// tell writes the status of a pod. As from a kubelet it comes without a version.
func (n *node) tell(ctx context.Context, pod *corev1.Pod) error {
	is := pod.DeepCopy()
	is.Status.Phase, is.Status.ContainerStatuses = corev1.PodRunning, nil
	ready := true
	for _, c := range n.running[pod.UID] {
		s := corev1.ContainerStatus{Name: c.Name, ContainerID: c.ID, RestartCount: c.RestartCount}
		if c.State == containerrestart.StateRunning {
			s.Ready = true
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.Started.Truncate(time.Second))}
		} else {
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: c.ExitCode, Reason: c.Reason, ContainerID: c.ID}
		}
		ready = ready && s.Ready
		is.Status.ContainerStatuses = append(is.Status.ContainerStatuses, s)
	}
	setCondition(is, corev1.ContainersReady, ready)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && isTrue(pod, gate.ConditionType)
	}
	setCondition(is, corev1.PodReady, ready)
	if apiequality.Semantic.DeepEqual(pod.Status, is.Status) {
		return nil
	}
	return client.IgnoreNotFound(n.client.Status().Patch(ctx, is, client.StrategicMergeFrom(pod)))
}

func setCondition(pod *corev1.Pod, t corev1.PodConditionType, is bool) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	switch c := lifecycle.ConditionOf(pod, t); {
	case c == nil:
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: status})
	case c.Status != status:
		*c = corev1.PodCondition{Type: t, Status: status}
	}
}

// containerIn is a container in a list; nil for none.
func containerIn(all []containerrestart.Container, name string) *containerrestart.Container {
	if i := slices.IndexFunc(all, func(c containerrestart.Container) bool { return c.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

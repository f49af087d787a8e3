package standin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Nodes plays the scheduler and the kubelets of several nodes at a pace that a reader can follow: a container takes
// time to start, in a new pod as in one that stays, and a deleted pod leaves after its grace period.
//
// As on a node, what runs is in memory. A status is compared with the last one written, so that a cache that lags
// causes no second write.
type Nodes struct {
	// Client writes. Its reads may be cached.
	Client client.Client
	// Names of the nodes.
	Names []string
	// Start is how long a container takes to start.
	Start time.Duration
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	mu   sync.Mutex
	pods map[types.NamespacedName]*sandbox
	// made counts sandboxes, for their addresses.
	made int
}

// Register creates the nodes, ready.
func (n *Nodes) Register(ctx context.Context) error {
	for _, name := range n.Names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		node.Status.Capacity = corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("200"), corev1.ResourceCPU: resource.MustParse("64"),
			corev1.ResourceMemory: resource.MustParse("256Gi"),
		}
		node.Status.Allocatable = node.Status.Capacity
		node.Status.NodeInfo.KubeletVersion = "simulated"
		now := metav1.NewTime(n.now())
		node.Status.Conditions = []corev1.NodeCondition{{
			Type:               corev1.NodeReady,
			Status:             corev1.ConditionTrue,
			Reason:             "KubeletReady",
			LastHeartbeatTime:  now,
			LastTransitionTime: now,
		}}
		if err := n.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
		// The API server taints a new node until its controllers have seen that the node is ready.
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))
		if err := n.Client.Patch(ctx, node, patch); err != nil {
			return fmt.Errorf("remove taint of node: %w", err)
		}
	}
	return nil
}

// SetupWithManager registers the nodes. A process may have several managers with nodes, one after the other.
func (n *Nodes) SetupWithManager(mgr ctrl.Manager) error {
	skip := true
	return ctrl.NewControllerManagedBy(mgr).Named("nodes").For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8, SkipNameValidation: &skip}).Complete(n)
}

// Reconcile does what is due for one pod.
func (n *Nodes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := n.Client.Get(ctx, request.NamespacedName, pod); err != nil {
		if client.IgnoreNotFound(err) == nil {
			n.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := n.next(pod)
	var err error
	switch {
	case s.remove:
		err = n.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case s.bind != "":
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: s.bind}}
		err = n.Client.SubResource("binding").Create(ctx, pod, binding)
	case s.status != nil:
		var patch []byte
		// As kubelets do: a patch without a version, of this pod and none that took its name.
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": s.status})
		if err == nil {
			err = n.Client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch))
		}
	}
	if client.IgnoreNotFound(err) != nil {
		n.doubt(request.NamespacedName)
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.after}, nil
}

func (n *Nodes) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, key)
}

// doubt has the last write repeated: its outcome is unknown.
func (n *Nodes) doubt(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s, known := n.pods[key]; known {
		s.node, s.ended, s.removed, s.written = "", false, false, corev1.PodStatus{StartTime: s.written.StartTime}
	}
}

func (n *Nodes) now() time.Time {
	if n.Now == nil {
		return time.Now()
	}
	return n.Now()
}

// step is what is due for a pod: at most one write, and when to look again.
type step struct {
	bind   string
	status *corev1.PodStatus
	remove bool
	after  time.Duration
}

// sandbox is what runs of a pod.
type sandbox struct {
	uid      types.UID
	node, ip string
	// containers by name.
	containers map[string]*container
	// ended says that the containers of the deleted pod have ended, and removed that the pod has been deleted for good.
	ended, removed bool
	// written is the last status written.
	written corev1.PodStatus
}

// container of a pod that runs, or starts when it is due.
type container struct {
	image    string
	restarts int32
	running  bool
	since    metav1.Time
	due      time.Time
}

// next decides what is due, and takes it for done.
func (n *Nodes) next(pod *corev1.Pod) step {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, now := n.sandboxOf(pod), n.now()
	switch {
	case s.removed:
		return step{} // the cache has not seen the deletion yet
	case pod.DeletionTimestamp != nil && (pod.Spec.NodeName == "" || s.ended):
		s.removed = true
		return step{remove: true}
	case pod.DeletionTimestamp != nil:
		if left := pod.DeletionTimestamp.Sub(now); left > 0 {
			return step{after: left}
		}
		s.ended = true
		status := s.status(pod, now)
		s.written = *status
		return step{status: status}
	case pod.Spec.NodeName == "" && s.node == "":
		s.node = n.emptiest()
		return step{bind: s.node}
	case pod.Spec.NodeName == "":
		return step{} // the cache has not seen the binding yet
	}
	s.node = pod.Spec.NodeName
	result := step{after: s.run(pod, now, n.Start)}
	if status := s.status(pod, now); !apiequality.Semantic.DeepEqual(status, &s.written) {
		s.written, result.status = *status, status
	}
	return result
}

func (n *Nodes) sandboxOf(pod *corev1.Pod) *sandbox {
	key := client.ObjectKeyFromObject(pod)
	if s, known := n.pods[key]; known && s.uid == pod.UID {
		return s
	}
	if n.pods == nil {
		n.pods = map[types.NamespacedName]*sandbox{}
	}
	n.made++
	s := &sandbox{
		uid: pod.UID, ip: fmt.Sprintf("10.128.%d.%d", n.made>>8&0xff, n.made&0xff), containers: map[string]*container{},
	}
	n.pods[key] = s
	return s
}

// emptiest returns the node with the fewest pods, by its place in Names where several have as few.
func (n *Nodes) emptiest() string {
	pods := map[string]int{}
	for _, s := range n.pods {
		pods[s.node]++
	}
	return slices.MinFunc(n.Names, func(a, b string) int { return cmp.Compare(pods[a], pods[b]) })
}

// run ends and starts containers, and returns when the next one is due.
func (s *sandbox) run(pod *corev1.Pod, now time.Time, start time.Duration) (after time.Duration) {
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		c := s.containers[spec.Name]
		switch {
		case c == nil:
			c = &container{restarts: -1, due: now.Add(start), image: spec.Image}
			s.containers[spec.Name] = c
		case c.running && c.image != spec.Image:
			c.running, c.since, c.due = false, metav1.NewTime(now), now.Add(start)
		case !c.running && !now.Before(c.due):
			c.running, c.since, c.image = true, metav1.NewTime(now), spec.Image
			c.restarts++
		}
		if left := c.due.Sub(now); !c.running && left > 0 && (after == 0 || left < after) {
			after = left
		}
	}
	return after
}

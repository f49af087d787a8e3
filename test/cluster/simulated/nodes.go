package simulated

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	kubeletLabel = "simulated.kruisekit.dev/kubelet"
	kubeletRuns  = "running"
	kubeletDead  = "dead"
)

// Add creates nodes and returns their names when all of them are ready.
func (n *Nodes) Add(ctx context.Context, count int) ([]string, error) {
	n.mu.Lock()
	first := n.made
	n.made += count
	n.mu.Unlock()

	names := make([]string, count)
	err := inParallel(count, n.config.Parallelism, func(i int) error {
		node := n.node(first + i)
		names[i] = node.Name
		if _, err := n.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.names = append(n.names, names...)
	n.mu.Unlock()
	return names, n.await(ctx, names, usable)
}

// Remove deletes nodes. Their pods go when kube-controller-manager collects them.
func (n *Nodes) Remove(ctx context.Context, names ...string) error {
	err := inParallel(len(names), n.config.Parallelism, func(i int) error {
		err := n.client.CoreV1().Nodes().Delete(ctx, names[i], metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete node %s: %w", names[i], err)
		}
		return nil
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names = slices.DeleteFunc(n.names, func(name string) bool { return slices.Contains(names, name) })
	return err
}

// Names of the nodes, in the order of their creation.
func (n *Nodes) Names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.names)
}

// SetReady lets a node's kubelet die or come back, and returns when the node shows it. A dead kubelet sends no
// heartbeats and touches no pod. What kube-controller-manager does when the grace period of a node has passed is done
// at once: the node's Ready condition turns Unknown, and its pods' Ready conditions False. Taints and evictions are
// left to it.
func (n *Nodes) SetReady(ctx context.Context, name string, ready bool) error {
	nodes := n.client.CoreV1().Nodes()
	state := kubeletDead
	if ready {
		state = kubeletRuns
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, kubeletLabel, state)
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label node %s: %w", name, err)
	}
	if ready {
		return n.await(ctx, []string{name}, usable)
	}
	patch = fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"Unknown","lastTransitionTime":%q,`+
		`"reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."}]}}`, now())
	_, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("mark node %s: %w", name, err)
	}
	return n.markPods(ctx, name)
}

// markPods makes the pods of a node not ready.
func (n *Nodes) markPods(ctx context.Context, node string) error {
	list, err := n.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("list pods of node %s: %w", node, err)
	}
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":%q}]}}`,
		now())
	return inParallel(len(list.Items), n.config.Parallelism, func(i int) error {
		pod := &list.Items[i]
		_, err := n.client.CoreV1().Pods(pod.Namespace).
			Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("mark pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		return nil
	})
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// await returns when each of the nodes is as asked.
func (n *Nodes) await(ctx context.Context, names []string, as func(*corev1.Node) bool) error {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := n.while(ctx)
	defer cancel()
	waiting := make(map[string]bool, len(names))
	for _, name := range names {
		waiting[name] = true
	}
	look := func(node *corev1.Node) bool {
		if waiting[node.Name] && as(node) {
			delete(waiting, node.Name)
		}
		return len(waiting) == 0
	}
	nodes := n.client.CoreV1().Nodes()
	list, err := nodes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range list.Items {
		if look(&list.Items[i]) {
			return nil
		}
	}
	source := &cache.ListWatch{WatchFuncWithContext: nodes.Watch}
	_, err = watchtools.Until(ctx, list.ResourceVersion, source, func(e watch.Event) (bool, error) {
		node, ok := e.Object.(*corev1.Node)
		return ok && look(node), nil
	})
	if err != nil {
		return fmt.Errorf("wait for %d of %d nodes: %w", len(waiting), len(names), errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// usable says that pods can be bound to the node: a ready one keeps its taint for a moment.
func usable(node *corev1.Node) bool {
	return isReady(node) && len(node.Spec.Taints) == 0
}

func defaultCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourcePods:   resource.MustParse("200"),
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
	}
}

// node is what a kubelet registers.
func (n *Nodes) node(i int) *corev1.Node {
	name := fmt.Sprintf("%s%d", n.config.NamePrefix, i)
	labels := map[string]string{
		corev1.LabelHostname:     name,
		corev1.LabelTopologyZone: n.config.Zones[i%len(n.config.Zones)],
		corev1.LabelOSStable:     "linux",
		corev1.LabelArchStable:   "amd64",
		kubeletLabel:             kubeletRuns,
	}
	maps.Copy(labels, n.config.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity:    n.config.Capacity,
			Allocatable: n.config.Capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", i>>16&0x7f, i>>8&0xff, i&0xff)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", OSImage: "simulated", KernelVersion: "simulated",
				ContainerRuntimeVersion: "containerd://simulated", KubeletVersion: n.version,
			},
		},
	}
}

// inParallel calls do with 0 to count-1, width at a time, and joins the errors.
func inParallel(count, width int, do func(int) error) error {
	var (
		group sync.WaitGroup
		slots = make(chan struct{}, width)
		errs  = make([]error, count)
	)
	for i := range count {
		slots <- struct{}{}
		group.Add(1)
		go func() {
			defer group.Done()

			defer func() { <-slots }()
			errs[i] = do(i)
		}()
	}
	group.Wait()
	return errors.Join(errs...)
}

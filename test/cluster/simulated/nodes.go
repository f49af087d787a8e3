package simulated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	// kubeletLabel is on the nodes that KWOK plays.
	kubeletLabel = "simulated.kruisekit.dev/kubelet"
	kubeletRuns  = "running"
)

// add creates the nodes and returns when all of them are ready.
func (n *Nodes) add(ctx context.Context) error {
	n.names = make([]string, n.config.Nodes)
	err := inParallel(len(n.names), func(i int) error {
		node := n.node(i)
		n.names[i] = node.Name
		if _, err := n.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.await(ctx, n.names, usable)
}

// Names of the nodes, in the order of their creation.
func (n *Nodes) Names() []string { return slices.Clone(n.names) }

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

// node is what a kubelet registers.
func (n *Nodes) node(i int) *corev1.Node {
	name := fmt.Sprintf("simulated-%d", i)
	capacity := corev1.ResourceList{
		corev1.ResourcePods:   resource.MustParse("200"),
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:     name,
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3+1),
			corev1.LabelOSStable:     "linux",
			corev1.LabelArchStable:   "amd64",
			kubeletLabel:             kubeletRuns,
		}},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
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

// inParallel calls do with 0 to count-1, and joins the errors.
func inParallel(count int, do func(int) error) error {
	var (
		group sync.WaitGroup
		slots = make(chan struct{}, parallelism)
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

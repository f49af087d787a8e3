package simulated

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// parallelism is how many writes are under way at a time, here and in KWOK.
const parallelism = 16

// register creates nodes as kubelets do, and returns their names.
func register(ctx context.Context, client kubernetes.Interface, count int) ([]string, error) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the server's version: %w", err)
	}
	names := make([]string, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i := range names {
		node := nodeOf(i, version.GitVersion)
		names[i] = node.Name
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("create nodes: %w", err)
	}
	return names, nil
}

// usable returns an error until pods can be bound to all nodes: a ready one keeps its taint for a moment.
func usable(ctx context.Context, client kubernetes.Interface, count int) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	ready := 0
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(list.Items[i].Spec.Taints) == 0 {
				ready++
			}
		}
	}
	if ready < count {
		return fmt.Errorf("%d of %d nodes are ready", ready, count)
	}
	return nil
}

func nodeOf(i int, version string) *corev1.Node {
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
				ContainerRuntimeVersion: "containerd://simulated", KubeletVersion: version,
			},
		},
	}
}

//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
)

// errDown says that there is no cluster, or not all of it.
var errDown = errors.New("not up")

// Health returns nil if all programs run and all nodes are ready.
func (c Config) Health(ctx context.Context) error {
	alive := map[string]bool{}
	for _, dir := range c.recordDirs() {
		records, err := process.Records(dir)
		if err != nil {
			return err
		}
		for _, r := range records {
			alive[r.Name] = r.Alive()
		}
	}
	for _, name := range c.expected() {
		if !alive[name] {
			return fmt.Errorf("%s: %w", name, errDown)
		}
	}
	clients, err := c.clients()
	if err != nil {
		return err
	}
	return c.nodesReady(ctx, clients)
}

func (Config) expected() []string {
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "registry"}
	for node := 1; node <= Count; node++ {
		names = append(names, Name(node), runtimeName(node), kubeletName(node))
	}
	return names
}

// prepare makes what a cluster comes with and waits for its nodes.
func (c Config) prepare(ctx context.Context) error {
	clients, err := c.clients()
	if err != nil {
		return err
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: "standard", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "kubernetes.io/host-path", ReclaimPolicy: &reclaim,
	}
	_, err = clients.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class: %w", err)
	}
	err = process.Poll(ctx, func(ctx context.Context) error { return c.nodesReady(ctx, clients) })
	if err != nil {
		return fmt.Errorf("wait for the nodes (logs in %s): %w", c.records(), err)
	}
	return nil
}

func (c Config) clients() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return clients, nil
}

func (Config) nodesReady(ctx context.Context, clients kubernetes.Interface) error {
	list, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	ready := 0
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			// The taint of a new node goes a moment after it becomes ready, and keeps pods off until then.
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				ready++
			}
		}
	}
	if ready < Count {
		return fmt.Errorf("%d of %d nodes are ready: %w", ready, Count, errDown)
	}
	return nil
}

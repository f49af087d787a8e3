package imagepulljob

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

func nodeGVK() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("NodeImage") }

// decoded has each NodeImage of the cache as it was decoded last: a pass may look at all nodes, of which few have changed.
type decoded struct {
	mu    sync.Mutex
	known map[string]*v1beta1.NodeImage
}

// of is a NodeImage that is only read; nil for one that cannot be decoded. No job selects such a one, and who keeps NodeImages
// says what is wrong with it.
func (d *decoded) of(o client.Object) *v1beta1.NodeImage {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if node := d.known[raw.GetName()]; node != nil && node.ResourceVersion == raw.GetResourceVersion() && node.UID == raw.GetUID() {
		return node
	}
	node, malformed, err := stored.Decode[v1beta1.NodeImage](raw)
	if malformed != nil || err != nil {
		return nil
	}
	if d.known == nil {
		d.known = map[string]*v1beta1.NodeImage{}
	}
	d.known[node.Name] = node
	return node
}

func (d *decoded) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, name)
}

// nodeNamed is a NodeImage of the cache; nil where there is none.
func (r *Reconciler) nodeNamed(ctx context.Context, name string) (*v1beta1.NodeImage, error) {
	raw := stored.Untyped(nodeGVK())
	switch err := r.objects.Get(ctx, types.NamespacedName{Name: name}, raw, client.UnsafeDisableDeepCopy); {
	case name == "", apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get NodeImage %s: %w", name, err)
	}
	return r.images.of(raw), nil
}

// listed are the NodeImages of the cache that a selector picks, or all.
func (r *Reconciler) listed(ctx context.Context, s *v1beta1.ImagePullJobNodeSelector) ([]*v1beta1.NodeImage, error) {
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if s != nil {
		selector, err := metav1.LabelSelectorAsSelector(&s.LabelSelector)
		if err != nil {
			return nil, err
		}
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(nodeGVK().GroupVersion().WithKind(nodeGVK().Kind + "List"))
	if err := r.objects.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list NodeImages: %w", err)
	}
	nodes := make([]*v1beta1.NodeImage, 0, len(list.Items))
	for i := range list.Items {
		if node := r.images.of(&list.Items[i]); node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

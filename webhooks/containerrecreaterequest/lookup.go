package containerrecreaterequest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// whereabouts reads a pod and its node; nil where there is none. Of the node there is only metadata.
func whereabouts(
	ctx context.Context, api client.Reader, namespace, name string,
) (*corev1.Pod, *corev1.Node, error) {
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return nil, nil, nil // nothing can have this name
	}
	pod := &corev1.Pod{}
	if found, err := find(ctx, api, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return nil, nil, fmt.Errorf("read pod %s: %w", name, err)
	} else if !found {
		return nil, nil, nil
	}
	if pod.Spec.NodeName == "" {
		return pod, nil, nil
	}
	// A node is large for its list of images.
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if found, err := find(ctx, api, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		return nil, nil, fmt.Errorf("read node %s of pod %s: %w", pod.Spec.NodeName, name, err)
	} else if !found {
		return pod, nil, nil
	}
	return pod, &corev1.Node{ObjectMeta: node.ObjectMeta}, nil
}

// find reports whether an object exists.
func find(ctx context.Context, api client.Reader, key client.ObjectKey, into client.Object) (bool, error) {
	err := api.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

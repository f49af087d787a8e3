package daemon

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// ManagerOptions are a start for those of a manager with these parts: the scheme, and a cache of what belongs to the
// node of the given name. Of pods it has only what the parts read.
func ManagerOptions(node string, o Options) (ctrl.Options, error) {
	if node == "" {
		return ctrl.Options{}, errors.New("daemon: the name of the node is needed")
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1alpha1.AddToScheme, appsv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return ctrl.Options{}, fmt.Errorf("make scheme: %w", err)
		}
	}
	live := []client.Object{&corev1.Secret{}}
	if o.WithoutPods {
		live = append(live, &corev1.Pod{})
	}
	return ctrl.Options{
		Scheme:   scheme,
		NewCache: newCache,
		Cache: cache.Options{
			ByObject:                    ofNode(node, o),
			DefaultTransform:            slimObject,
			ReaderFailOnMissingInformer: true,
			SyncPeriod:                  ptr.To[time.Duration](0),
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: live}},
	}, nil
}

// ofNode says by kind how API servers find what belongs to a node.
func ofNode(node string, o Options) map[client.Object]cache.ByObject {
	selected := map[client.Object]cache.ByObject{
		&appsv1beta1.NodeImage{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, node)},
	}
	if !o.WithoutProbes {
		selected[&appsv1alpha1.NodePodProbe{}] = cache.ByObject{
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, node),
		}
	}
	if isLabel(node) {
		selected[&appsv1beta1.ContainerRecreateRequest{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{
			appsv1beta1.ContainerRecreateRequestNodeNameKey: node,
			appsv1beta1.ContainerRecreateRequestActiveKey:   "true",
		})}
	}
	if !o.WithoutPods {
		selected[&corev1.Pod{}] = cache.ByObject{
			Field: fields.OneTermEqualSelector("spec.nodeName", node), Transform: slimPod,
		}
	}
	return selected
}

// isLabel reports whether requests can name the node: their label takes 63 characters, the name of a node has up
// to 253.
func isLabel(node string) bool { return len(validation.IsValidLabelValue(node)) == 0 }

package controllers

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// ManagerOptions are a start for those of a manager with these reconcilers: they set the scheme, and what keeps memory
// small. The cache drops managedFields, a third of a pod, which no reconciler reads, the lists of images of nodes, the
// specs of untyped Jobs, most of untyped Deployments and StatefulSets that no UnitedDeployment controls, and
// annotations where only metadata of Deployments, ReplicaSets and StatefulSets is read, and the templates of
// ReplicaSets without pods. Secrets and ConfigMaps are read
// live: one read in passing would otherwise bring all of the cluster's into memory, and ask for the right to see them.
//
// Pods lack what no reconciler here reads: of their specs stay images, resources, ports, hooks, claims, what places
// them, and variables that come from labels and annotations or belong to a feature. A cached pod is no base for an
// update. A manager with reconcilers that read more gives pods a transform of its own, in Cache.ByObject. The
// controllers that watch pods get their events by one listener.
//
// Untyped objects of our kinds, Deployments and StatefulSets have their spec and their status as text, which these
// reconcilers and webhooks decode when they use it: a spec of 1.4 MB takes 30 MiB otherwise. Other readers of these
// kinds use the types, or read live.
//
// Each manager needs options of its own: controller-runtime writes the cache of a manager into them, from which the
// client of another manager would read.
func ManagerOptions() (ctrl.Options, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		appsv1alpha1.AddToScheme, appsv1beta1.AddToScheme, policyv1alpha1.AddToScheme, policyv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return ctrl.Options{}, fmt.Errorf("make scheme: %w", err)
		}
	}
	return ctrl.Options{
		Scheme:   scheme,
		NewCache: watches.OneListener(&corev1.Pod{}),
		Cache: cache.Options{
			DefaultTransform: compact,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}:         {Transform: leanPods(&stored.LeanPods{})},
				&corev1.Node{}:        {Transform: leanNode},
				&batchv1.Job{}:        {Transform: leanJob},
				&appsv1.Deployment{}:  {Transform: leanWorkload},
				&appsv1.ReplicaSet{}:  {Transform: leanReplicaSet},
				&appsv1.StatefulSet{}: {Transform: leanWorkload},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{},
		}}},
	}, nil
}

// compact is an object without managedFields, and an untyped one of our kinds packed.
func compact(object any) (any, error) {
	if raw, ok := object.(*unstructured.Unstructured); ok {
		switch raw.GroupVersionKind().Group {
		case appsv1beta1.GroupVersion.Group, policyv1beta1.GroupVersion.Group:
			stored.Pack(raw)
		}
	}
	return cache.TransformStripManagedFields()(object)
}

// leanPods make of a typed pod one without what package lean drops, which shares what is equal with others. Untyped
// pods and metadata stay as they are, but for managedFields.
func leanPods(pods *stored.LeanPods) func(any) (any, error) {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			pods.Pod(pod)
		}
		return cache.TransformStripManagedFields()(object)
	}
}

// leanNode is a node without what makes most of it.
func leanNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields, node.Status.Images = nil, nil
	}
	return object, nil
}

// leanJob is an untyped Job without its spec: the reconciler of AdvancedCronJobs reads metadata and status. A typed Job
// stays as it is, but for managedFields.
func leanJob(object any) (any, error) {
	if job, ok := object.(*unstructured.Unstructured); ok {
		unstructured.RemoveNestedField(job.Object, "spec")
	}
	return cache.TransformStripManagedFields()(object)
}

// leanWorkload is the metadata of a workload without annotations, which repeat most of it. An untyped workload that no
// UnitedDeployment controls keeps what identifies it and its owners, because the reconciler of UnitedDeployments reads
// the others alone, and what the reconciler of PersistentPodStates reads. An untyped workload is packed. Typed
// workloads stay as they are, but for managedFields.
func leanWorkload(object any) (any, error) {
	switch workload := object.(type) {
	case *metav1.PartialObjectMetadata:
		workload.ManagedFields, workload.Annotations = nil, nil
		return workload, nil
	case *unstructured.Unstructured:
		part := podstates.Part(workload)
		uniteddeployment.Lean(workload)
		restore(workload.Object, part)
		stored.Pack(workload)
	}
	return cache.TransformStripManagedFields()(object)
}

// leanReplicaSet is leanWorkload, and a typed ReplicaSet without pods has no template: there are ten for each
// Deployment. Package native reads those live that it needs.
func leanReplicaSet(object any) (any, error) {
	if set, ok := object.(*appsv1.ReplicaSet); ok && ptr.Deref(set.Spec.Replicas, 1) == 0 && set.Status.Replicas == 0 {
		set.Spec.Template = corev1.PodTemplateSpec{}
	}
	return leanWorkload(object)
}

// restore puts the values of a part back where an object lacks them.
func restore(object, part map[string]any) {
	for key, value := range part {
		within, is := value.(map[string]any)
		there, has := object[key].(map[string]any)
		switch {
		case is && has:
			restore(there, within)
		case object[key] == nil:
			object[key] = value
		}
	}
}

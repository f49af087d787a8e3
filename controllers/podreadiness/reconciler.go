package podreadiness

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// Options of a Reconciler. The zero value behaves as the reference does.
type Options struct {
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Reconciler sets KruisePodReady of new pods.
type Reconciler struct {
	api  *binding.Binding
	said said
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("podreadiness", c, binding.Options{Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{api: api}, nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	return r.api.Bind(mgr, controllerName, o).
		For(&corev1.Pod{}, builder.WithPredicates(r.events())).
		Complete(r)
}

const (
	controllerName = "pod-readiness-controller"
	// fieldOwner owns the condition until another writer changes it.
	fieldOwner = "kruise-pod-readiness"

	// patience is how long the cache may take to show a write.
	patience = time.Minute
)

// Reconcile sets the condition of one pod, if it has none.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := r.api.Client.Get(ctx, name.NamespacedName, pod); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read pod: %w", err)
	}
	if !waits(pod) { // as one that is not there does not
		r.said.forget(name.NamespacedName)
		return ctrl.Result{}, nil
	}
	if left := patience - r.api.Now().Sub(r.said.when(name.NamespacedName, pod.UID)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	switch err := r.set(ctx, pod); {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		// Another writer has set it, or another pod has the name. The cache will show which.
		return ctrl.Result{RequeueAfter: patience}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	r.said.note(name.NamespacedName, pod.UID, r.api.Now())
	return ctrl.Result{RequeueAfter: patience}, nil
}

// set applies the condition and nothing else.
func (r *Reconciler) set(ctx context.Context, pod *corev1.Pod) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": pod.Namespace, "name": pod.Name, "uid": pod.UID},
		"status": map[string]any{"conditions": []map[string]any{{
			"type": kruise.KruisePodReadyConditionType, "status": corev1.ConditionTrue, "lastTransitionTime": metav1.NewTime(r.api.Now()),
		}}},
	})
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	answer.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := r.api.Client.Status().Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("write condition of pod: %w", err)
	}
	return nil
}

// waits says whether a pod waits for its first word.
func waits(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && lifecycle.HasGate(pod, kruise.KruisePodReadyConditionType) &&
		lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType) == nil
}

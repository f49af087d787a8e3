package guard_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/test/objects"
)

const namespace = "shop"

// world runs the reconciler of a kind and counts its passes.
type world struct {
	*objects.Model

	t      testing.TB
	next   reconcile.Reconciler
	passes int
}

// Reconcile counts a pass.
func (w *world) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	w.passes++
	return w.next.Reconcile(ctx, q)
}

// kind is a workload whose cost is kept.
type kind struct {
	list client.ObjectList
	stem func(pod string) (workload string, ok bool)
	// object returns a workload with n pods, that updates a fifth of them at a time.
	object func(n int) (client.Object, *corev1.PodTemplateSpec)
	// reconciler makes the reconciler with a client of a world.
	reconciler func(w *world, c client.Client) (reconcile.Reconciler, error)
}

func template() corev1.PodTemplateSpec {
	var t corev1.PodTemplateSpec
	t.Labels = map[string]string{"app": "web"}
	t.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	return t
}

func kinds() map[string]kind {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "web", Generation: 1}
	share := ptr.To(intstr.FromString("20%"))
	return map[string]kind{
		"CloneSet": {
			list: &v1beta1.CloneSetList{},
			object: func(n int) (client.Object, *corev1.PodTemplateSpec) {
				s := &v1beta1.CloneSet{ObjectMeta: meta}
				s.Spec.Replicas, s.Spec.Selector, s.Spec.Template = ptr.To(int32(n)), selector, template()
				s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType, MaxUnavailable: share,
				}
				return s, &s.Spec.Template
			},
			reconciler: func(w *world, c client.Client) (reconcile.Reconciler, error) {
				return cloneset.New(c, cloneset.Options{Now: w.Now, Recorder: w.Server, Live: w.Server})
			},
		},
		"StatefulSet": {
			list: &v1beta1.StatefulSetList{},
			stem: func(pod string) (string, bool) { set, _, ok := ordinals.Split(pod); return set, ok },
			object: func(n int) (client.Object, *corev1.PodTemplateSpec) {
				s := &v1beta1.StatefulSet{ObjectMeta: meta}
				s.Spec.Replicas, s.Spec.Selector, s.Spec.Template = ptr.To(int32(n)), selector, template()
				s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType, MaxUnavailable: share,
				}
				return s, &s.Spec.Template
			},
			reconciler: func(w *world, c client.Client) (reconcile.Reconciler, error) {
				return statefulset.New(c, statefulset.Options{Now: w.Now, Recorder: w.Server, Live: w.Server})
			},
		},
		"DaemonSet": {
			list: &v1beta1.DaemonSetList{}, stem: workloads.OwnerOfPod,
			object: func(int) (client.Object, *corev1.PodTemplateSpec) {
				s := &v1beta1.DaemonSet{ObjectMeta: meta}
				s.Spec.Selector, s.Spec.Template = selector, template()
				s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
					Type: v1beta1.InplaceRollingUpdateType, MaxUnavailable: share,
				}
				return s, &s.Spec.Template
			},
			reconciler: func(w *world, c client.Client) (reconcile.Reconciler, error) {
				return daemonset.New(c, daemonset.Options{Now: w.Now, Recorder: w.Server, Live: w.Server})
			},
		},
	}
}

// newWorld has a workload of the kind with n pods, or n nodes, that nothing has reconciled.
func newWorld(t testing.TB, k kind, name string, n int) (*world, client.Object, *corev1.PodTemplateSpec) {
	t.Helper()
	w := &world{t: t, Model: objects.NewModel(t, k.list, v1beta1.AddToScheme)}
	for _, o := range []client.Object{
		&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{},
		workloads.PullJobMetadata(&v1beta1.ImagePullJob{}),
	} {
		if err := owned.Index(t.Context(), w.Server, o); err != nil {
			t.Fatal(err)
		}
	}
	if k.stem != nil {
		if err := workloads.IndexOrphans(t.Context(), w.Server, name, k.stem); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
		if err := w.Server.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	w.use(k, w.Server)
	object, pods := k.object(n)
	if err := w.Server.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.Server.Requests()
	return w, object, pods
}

// use has the reconciler of a kind read and write with a client.
func (w *world) use(k kind, c client.Client) {
	w.t.Helper()
	next, err := k.reconciler(w, c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.next, w.Reconciler = next, w
}

var named = regexp.MustCompile(`^(\S+ [a-z]+)/[^/ ]+(/\S+)?( .*)?$`)

// cost runs until nothing is left to do, and returns the passes and the writes by kind since the last call.
func (w *world) cost(what string) string {
	w.t.Helper()
	w.Still()
	counts := map[string]int{}
	for _, request := range w.Server.Requests() {
		counts[named.ReplaceAllString(request, "$1$2$3")]++
	}
	lines := []string{fmt.Sprintf("%s: %d passes", what, w.passes)}
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("  %d %s", counts[request], request))
	}
	w.passes = 0
	return strings.Join(lines, "\n") + "\n"
}

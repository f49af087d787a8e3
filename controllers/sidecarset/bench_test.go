package sidecarset

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/internal/history"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/test/growth"
)

// warehouse is a cache that has everything, and an API server that takes statuses. All else panics: a pass that is
// measured does not do it.
type warehouse struct {
	client.Client

	set       *v1beta1.SidecarSet
	pods      []corev1.Pod
	revisions []appsv1.ControllerRevision
}

func (w *warehouse) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.set)
	if raw, ok := into.(*unstructured.Unstructured); ok {
		raw.Object = content
	}
	return err
}

func (w *warehouse) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *corev1.PodList:
		list.Items = w.pods
	case *appsv1.ControllerRevisionList:
		list.Items = w.revisions
	}
	return nil
}

func (*warehouse) Status() client.SubResourceWriter { return statuses{} }

type statuses struct{ client.SubResourceWriter }

func (statuses) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// stock makes a set of n pods that have it, and whose containers have run another image before.
func stock(tb testing.TB, n int) *warehouse {
	tb.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", UID: "set", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Image: "proxy:1"}}}
	set.Default()
	for key, hash := range map[string]func(*v1beta1.SidecarSet) (string, error){
		kruise.SidecarSetHashKey: sidecar.Hash, kruise.SidecarSetHashWithoutImageKey: sidecar.HashWithoutImage,
	} {
		value, err := hash(set)
		if err != nil {
			tb.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
	data, err := history.Encode(set)
	if err != nil {
		tb.Fatal(err)
	}
	made := revision.Resolve(revision.Input{Owner: set.Name, Data: data})
	rev := appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: made.Name}, Data: runtime.RawExtension{Raw: data}, Revision: 1,
	}
	template := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}}}
	template.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	injection, err := sidecar.Inject(template, parse(tb, set), sidecar.Options{Now: time.Unix(0, 0)})
	if err != nil {
		tb.Fatal(err)
	}
	pod := injection.Pod
	pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = `{"mesh":{"revision":"x","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":{"proxy":{"imageID":"sha256:0"}}}}`
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{
			Type:    kruise.SidecarSetUpgradable,
			Status:  corev1.ConditionTrue,
			Reason:  kruise.SidecarSetUpgradableReasonAll,
			Message: `{"mesh":true}`,
		},
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "sha256:1", Ready: true,
		})
	}
	w := &warehouse{set: set, revisions: []appsv1.ControllerRevision{rev}}
	for i := range n {
		one := pod.DeepCopy()
		one.Name, one.Namespace = fmt.Sprintf("pod-%05d", i), fmt.Sprintf("ns-%d", i%50)
		one.UID = types.UID(one.Name)
		w.pods = append(w.pods, *one)
	}
	return w
}

// halfway gives the set an image that all wait for, which a partition keeps.
func (w *warehouse) halfway(tb testing.TB) *warehouse {
	tb.Helper()
	fresh := stock(tb, 0)
	*fresh = *w
	fresh.set = w.set.DeepCopy()
	fresh.set.Annotations[kruise.SidecarSetHashKey] = "another"
	fresh.set.Spec.UpdateStrategy.Partition.IntVal = int32(len(w.pods))
	fresh.set.Spec.UpdateStrategy.PriorityStrategy = &kruise.UpdatePriorityStrategy{
		OrderPriority: []kruise.UpdatePriorityOrderTerm{{OrderedKey: "app"}},
	}
	return fresh
}

// scattered gives each of some pods a value of a label, by which the set scatters updates.
func (w *warehouse) scattered(tb testing.TB, each int) *warehouse {
	tb.Helper()
	fresh := w.halfway(tb)
	fresh.pods = slices.Clone(w.pods)
	for i := range fresh.pods {
		pod := fresh.pods[i].DeepCopy()
		pod.Labels["group"] = fmt.Sprint(i / each)
		fresh.pods[i] = *pod
	}
	fresh.set.Spec.UpdateStrategy.ScatterStrategy = kruise.UpdateScatterStrategy{{Key: "group", Value: "*"}}
	return fresh
}

func (w *warehouse) pass(tb testing.TB) (notes []note.Note) {
	tb.Helper()
	r, err := New(w, Options{
		Now:     func() time.Time { return time.Unix(1_800_000_000, 0) },
		Explain: func(_ context.Context, _ string, n []note.Note) { notes = n },
	})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := r.Reconcile(tb.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Name: w.set.Name}}); err != nil {
		tb.Fatal(err)
	}
	return notes
}

// A pass over a large set, without what the API server and the network cost.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		w := stock(b, n)
		for name, w := range map[string]*warehouse{"idle": w, "waiting": w.halfway(b)} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w.pass(b)
				}
			})
		}
	}
}

// TestPassesGrowWithThePods: twenty times the pods cost about twenty times as much.
func TestPassesGrowWithThePods(t *testing.T) {
	const n, times = 300, 20
	small, large := stock(t, n), stock(t, times*n)
	for name, pair := range map[string][2]*warehouse{
		"idle":               {small, large},
		"waiting":            {small.halfway(t), large.halfway(t)},
		"scattered":          {small.scattered(t, 1), large.scattered(t, 1)},
		"scattered in pairs": {small.scattered(t, 2), large.scattered(t, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			if notes := pair[1].pass(t); (len(notes) == 0) != (name == "idle") {
				t.Errorf("%d notes", len(notes))
			}
			growth.Linear(t, n, times, func(size int) func() {
				w := pair[0]
				if size != n {
					w = pair[1]
				}
				return func() { w.pass(t) }
			})
		})
	}
}

func parse(tb testing.TB, sets ...*v1beta1.SidecarSet) []*sidecar.Set {
	tb.Helper()
	all := make([]*sidecar.Set, len(sets))
	for i := range sets {
		set, err := sidecar.Parse(sets[i])
		if err != nil {
			tb.Fatal(err)
		}
		all[i] = set
	}
	return all
}

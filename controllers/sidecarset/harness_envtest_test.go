//go:build envtest

package sidecarset_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/standin"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// bench is a namespace with sets of its own.
type bench struct{ *podbench.Bench }

const (
	// unready is the annotation of a pod that the stand-in of the kubelet keeps from being ready.
	unready = "test.kruisekit.dev/unready"
	// owner is the label of a set with the test that it is of: sets have no namespace.
	owner = "test.kruisekit.dev/of"
)

// start runs a test with others at the same time.
func start(t *testing.T, o sidecarset.Options) *bench {
	t.Helper()
	t.Parallel()
	b := newBench(t)
	b.reconcile(o, same)
	return b
}

func same(c client.WithWatch) client.Client { return c }

// newBench has no reconciler yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := newGround(t)
	b.Beside(func(mgr ctrl.Manager) error {
		kubelet := &standin.Kubelet{
			Client: mgr.GetClient(), Namespace: b.Namespace, Node: "node-1",
			Broken:  func(image string) bool { return strings.HasSuffix(image, ":broken") },
			Unready: func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is },
		}
		return kubelet.SetupWithManager(mgr)
	})
	return b
}

// newGround has nothing that runs pods, either.
func newGround(t *testing.T) *bench {
	t.Helper()
	b := &bench{podbench.New(t, cluster.Options{CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_sidecarsets.yaml"}})}
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("SidecarSet"))
	b.Cache.ByObject = map[client.Object]cache.ByObject{set: {Label: labels.SelectorFromSet(labels.Set{owner: b.Namespace})}}
	b.Cleanup(func() { // the test's context is over
		if err := b.Client.DeleteAllOf(context.WithoutCancel(t.Context()), &v1beta1.SidecarSet{}, client.MatchingLabels{owner: b.Namespace}); err != nil {
			t.Error(err)
		}
	})
	return b
}

// reconcile starts a reconciler of the test's sets, and gives what stops it. It stops with the test at the latest.
func (b *bench) reconcile(o sidecarset.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	o.Namespace = b.Namespace
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := sidecarset.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

// hashed writes on a set what its webhook would.
func (b *bench) hashed(set *v1beta1.SidecarSet) {
	b.Helper()
	set.Default()
	for key, hash := range map[string]func(*v1beta1.SidecarSet) (string, error){
		pub.SidecarSetHashKey: sidecar.Hash, pub.SidecarSetHashWithoutImageKey: sidecar.HashWithoutImage,
	} {
		value, err := hash(set)
		if err != nil {
			b.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
}

// create makes a set with a container mesh, for the pods of the test. Its name begins with the namespace.
func (b *bench) create(name string, change ...func(*v1beta1.SidecarSet)) *v1beta1.SidecarSet {
	b.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: b.Namespace + "-" + name, Labels: map[string]string{owner: b.Namespace}}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: b.Namespace}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: name, Image: name + ":1"}}}
	for _, c := range change {
		c(set)
	}
	b.hashed(set)
	if err := b.Client.Create(b.Context(), set); err != nil {
		b.Fatal(err)
	}
	return set
}

// change patches the set, as a user and the webhook do.
func (b *bench) change(set *v1beta1.SidecarSet, how ...func(*v1beta1.SidecarSet)) {
	b.Helper()
	b.get(set)
	before := set.DeepCopy()
	for _, h := range how {
		h(set)
	}
	b.hashed(set)
	if err := b.Client.Patch(b.Context(), set, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) get(o client.Object) {
	b.Helper()
	if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.Fatal(err)
	}
}

func image(image string) func(*v1beta1.SidecarSet) {
	return func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Image = image }
}

func hot(s *v1beta1.SidecarSet) {
	s.Spec.Containers[0].UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{
		UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "empty:1",
	}
}

func notUpdate(s *v1beta1.SidecarSet) {
	s.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
}

func parsed(tb testing.TB, sets ...*v1beta1.SidecarSet) []*sidecar.Set {
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

// pod makes one pod that is given sets, as the webhook does.
func (b *bench) pod(name string, sets []*v1beta1.SidecarSet, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Labels: map[string]string{"app": "shop"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	for _, c := range change {
		c(pod)
	}
	for _, set := range sets {
		if set.ResourceVersion != "" { // one that was restored has none
			b.get(set)
		}
	}
	injection, err := sidecar.Inject(pod, parsed(b, sets...), sidecar.Options{Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	if err := b.Client.Create(b.Context(), injection.Pod); err != nil {
		b.Fatal(err)
	}
	return injection.Pod
}

// fleet makes n pods that are given sets.
func (b *bench) fleet(n int, sets ...*v1beta1.SidecarSet) {
	b.Helper()
	for i := range n {
		b.pod(fmt.Sprintf("pod-%d", i), sets)
	}
}

// pods of the test, by name.
func (b *bench) pods() []corev1.Pod {
	b.Helper()
	var list corev1.PodList
	if err := b.Client.List(b.Context(), &list, client.InNamespace(b.Namespace)); err != nil {
		b.Fatal(err)
	}
	return list.Items
}

// counted waits for the status of a set: matched, updated, ready, and both.
func (b *bench) counted(set *v1beta1.SidecarSet, matched, updated, ready, both int32) {
	b.Helper()
	b.Until(func() error {
		b.get(set)
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.MatchedPods != matched || s.UpdatedPods != updated || s.ReadyPods != ready || s.UpdatedReadyPods != both {
			return fmt.Errorf("want %d/%d/%d/%d, got %+v", matched, updated, ready, both, s)
		}
		return nil
	})
}

// images of the sidecars in all pods, as NAME=IMAGE.
func images(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		for _, c := range pods[i].Spec.Containers {
			if c.Name != "main" {
				all = append(all, c.Name+"="+c.Image)
			}
		}
	}
	slices.Sort(all)
	return all
}

// revisions of a set, oldest first.
func (b *bench) revisions(set *v1beta1.SidecarSet) []*appsv1.ControllerRevision {
	b.Helper()
	var list appsv1.ControllerRevisionList
	if err := b.Client.List(b.Context(), &list, client.InNamespace(b.Namespace), client.MatchingLabels{v1beta1.SidecarSetNameLabel: set.Name}); err != nil {
		b.Fatal(err)
	}
	var all []*appsv1.ControllerRevision
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	revision.Sort(all)
	return all
}

// events of a reason, each as often as it was counted.
func (b *bench) events(reason string) int {
	b.Helper()
	var list corev1.EventList
	if err := b.Client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		e := &list.Items[i]
		about := e.InvolvedObject
		if e.Reason == reason && e.Source.Component == "sidecarset-controller" && (about.Namespace == b.Namespace || strings.HasPrefix(about.Name, b.Namespace)) {
			n += int(max(e.Count, 1))
		}
	}
	return n
}

// about are the requests that hold all of some words.
func about(all []string, words ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(request string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(request, word) })
	})
}

package statefulset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/test/objects"
)

// unready is the annotation of a pod that the kubelet keeps from being ready.
const unready = "test.kruisekit.dev/unready"

// model runs the reconciler of StatefulSets, and a garbage collector of claims.
type model struct {
	*testing.T
	*objects.Model

	options Options
	// offline means that file systems grow when they are mounted.
	offline bool
}

func newModel(t *testing.T, o Options) *model {
	t.Helper()
	m := &model{T: t, Model: objects.NewModel(t, &v1beta1.StatefulSetList{}, v1beta1.AddToScheme), options: o}
	m.Kubelet.Unready = func(pod *corev1.Pod) bool { _, is := pod.Annotations[unready]; return is }
	for _, object := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
		if err := owned.Index(t.Context(), m.Server, object); err != nil {
			t.Fatal(err)
		}
	}
	stem := func(pod string) (string, bool) { set, _, ok := ordinals.Split(pod); return set, ok }
	if err := workloads.IndexOrphans(t.Context(), m.Server, "StatefulSet", stem); err != nil {
		t.Fatal(err)
	}
	m.restart(m.Server)
	return m
}

// restart starts another reconciler in the place of the one before, with a client of the server.
func (m *model) restart(c client.Client) {
	m.Helper()
	o := m.options
	o.Now, o.Recorder, o.Live = m.Now, m.Server, m.Live
	r, err := New(c, o)
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

// create creates a set with nothing but what is required, and what changes add.
func (m *model) create(name string, replicas int32, changes ...func(*v1beta1.StatefulSet)) *v1beta1.StatefulSet {
	m.Helper()
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	set.Spec.Replicas = &replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	set.Spec.Template.Labels = map[string]string{"app": name}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	for _, change := range changes {
		change(set)
	}
	if err := m.Server.Create(m.Context(), set); err != nil {
		m.Fatal(err)
	}
	return set
}

// change patches the set.
func (m *model) change(set *v1beta1.StatefulSet, changes ...func(*v1beta1.StatefulSet)) {
	m.Helper()
	objects.Change(m.Model, set, func(set *v1beta1.StatefulSet) {
		for _, change := range changes {
			change(set)
		}
	})
}

// pods returns the pods with the label of the set, those that terminate included, by ordinal.
func (m *model) pods(set *v1beta1.StatefulSet) []corev1.Pod {
	m.Helper()
	var list corev1.PodList
	if err := m.Server.List(m.Context(), &list, client.InNamespace("shop"),
		client.MatchingLabels{"app": set.Name}); err != nil {
		m.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return int(ordinalOf(&a)) - int(ordinalOf(&b)) })
	return list.Items
}

func ordinalOf(pod *corev1.Pod) int32 {
	_, ordinal, _ := ordinals.Split(pod.Name)
	return ordinal
}

// pod returns the pod of an ordinal.
func (m *model) pod(set *v1beta1.StatefulSet, ordinal int32) *corev1.Pod {
	m.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: ordinals.Name(set.Name, ordinal)}}
	m.Look(pod)
	return pod
}

// claims returns the names of all claims.
func (m *model) claims() []string {
	m.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := m.Server.List(m.Context(), &list, client.InNamespace("shop")); err != nil {
		m.Fatal(err)
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// edit changes the metadata of a pod by a merge patch.
func (m *model) edit(pod *corev1.Pod, metadata string) {
	m.Helper()
	if err := m.Server.Patch(m.Context(), pod,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+metadata+`}`))); err != nil {
		m.Fatal(err)
	}
}

func (m *model) delete(o client.Object) {
	m.Helper()
	if err := m.Server.Delete(m.Context(), o); err != nil {
		m.Fatal(err)
	}
}

// provision gives volumes to claims, and has them grow as their claims do, as a storage driver does.
func (m *model) provision() {
	m.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := m.Server.List(m.Context(), &list, client.InNamespace("shop")); err != nil {
		m.Fatal(err)
	}
	for i := range list.Items {
		claim := &list.Items[i]
		before := claim.DeepCopy()
		requests := claim.Spec.Resources.Requests
		has := claim.Status.Capacity[corev1.ResourceStorage]
		if has.Cmp(requests[corev1.ResourceStorage]) >= 0 {
			continue
		}
		pending := len(claim.Status.Conditions) > 0
		switch {
		case has.IsZero() || !m.offline || pending && m.mountedSince(claim):
			claim.Status.Phase, claim.Status.Capacity, claim.Status.Conditions = corev1.ClaimBound, requests, nil
		case !pending:
			claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
				Type:               corev1.PersistentVolumeClaimFileSystemResizePending,
				Status:             corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(m.Clock),
			}}
		default:
			continue
		}
		if err := m.Server.Status().Patch(m.Context(), claim, client.MergeFrom(before)); err != nil {
			m.Fatal(err)
		}
	}
}

// mountedSince reports whether a pod has mounted the claim since its volume grew.
func (m *model) mountedSince(claim *corev1.PersistentVolumeClaim) bool {
	pod := &corev1.Pod{}
	name := types.NamespacedName{Namespace: claim.Namespace, Name: strings.TrimPrefix(claim.Name, "data-")}
	return m.Server.Get(m.Context(), name, pod) == nil && isReady(pod) &&
		pod.CreationTimestamp.After(claim.Status.Conditions[0].LastTransitionTime.Time)
}

// eventually runs until the check returns nil. It moves the clock to the next requeue where nothing else is left to do.
func (m *model) eventually(set *v1beta1.StatefulSet, check func(*v1beta1.StatefulSet) error) {
	m.Helper()
	m.Eventually(func() error {
		m.Look(set)
		if err := check(set); err != nil {
			return fmt.Errorf("%w\nstatus: %+v\npods: %s", err, set.Status, m.picture(set))
		}
		return nil
	})
}

// becomes runs until the set has settled with pods as in a picture.
func (m *model) becomes(set *v1beta1.StatefulSet, picture string) {
	m.Helper()
	m.eventually(set, func(*v1beta1.StatefulSet) error {
		if got := m.picture(set); got != picture {
			return fmt.Errorf("pods %q, want %q", got, picture)
		}
		return nil
	})
	m.stays(set, picture)
}

// stays expects a picture when there is nothing left to do now.
func (m *model) stays(set *v1beta1.StatefulSet, picture string) {
	m.Helper()
	m.Still()
	if got := m.picture(set); got != picture {
		m.Errorf("pods %q, want %q", got, picture)
	}
}

// picture is the pods in a few characters each: the ordinal and the release of the image; a dash for not ready, a star
// for terminating.
func (m *model) picture(set *v1beta1.StatefulSet) string {
	m.Helper()
	var all []string
	for _, pod := range m.pods(set) {
		text := fmt.Sprintf("%d:%s", ordinalOf(&pod), strings.TrimPrefix(pod.Spec.Containers[0].Image, "web:"))
		switch {
		case pod.DeletionTimestamp != nil:
			text += "*"
		case !isReady(&pod):
			text += "-"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func scaled(n int32) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) { s.Spec.Replicas = &n }
}

func (m *model) revisions() []appsv1.ControllerRevision {
	m.Helper()
	var list appsv1.ControllerRevisionList
	if err := m.Server.List(m.Context(), &list, client.InNamespace("shop")); err != nil {
		m.Fatal(err)
	}
	return list.Items
}

// expanding has claims that grow with the updates of their pods.
func expanding(s *v1beta1.StatefulSet) {
	withClaims(keeps, keeps)(s)
	s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// sized changes what the claim template asks for.
func sized(size string) func(*v1beta1.StatefulSet) {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse(size)}
	}
}

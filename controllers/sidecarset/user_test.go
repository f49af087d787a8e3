package sidecarset_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar"
)

// user is the user of sets, the webhook of sets and that of pods, on an API server or over objects in memory.
type user struct {
	t         testing.TB
	client    client.Client
	namespace string
	// until waits for a check that returns nil.
	until func(check func() error)
}

const (
	// unready is the annotation of a pod that the stand-in of the kubelet keeps from being ready.
	unready = "test.kruisekit.dev/unready"
	// owner is the label of a set with the test that it is of: sets have no namespace.
	owner = "test.kruisekit.dev/of"
)

// hashed writes on a set what its webhook would.
func (u *user) hashed(set *v1beta1.SidecarSet) {
	u.t.Helper()
	set.Default()
	for key, hash := range map[string]func(*v1beta1.SidecarSet) (string, error){
		kruise.SidecarSetHashKey: sidecar.Hash, kruise.SidecarSetHashWithoutImageKey: sidecar.HashWithoutImage,
	} {
		value, err := hash(set)
		if err != nil {
			u.t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
}

// create makes a set with a container mesh, for the pods of the test. Its name begins with the namespace.
func (u *user) create(name string, change ...func(*v1beta1.SidecarSet)) *v1beta1.SidecarSet {
	u.t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{
		Name: u.namespace + "-" + name, Labels: map[string]string{owner: u.namespace},
	}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
		corev1.LabelMetadataName: u.namespace,
	}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: name, Image: name + ":1"}}}
	for _, c := range change {
		c(set)
	}
	u.hashed(set)
	if err := u.client.Create(u.t.Context(), set); err != nil {
		u.t.Fatal(err)
	}
	return set
}

// change patches the set, as a user and the webhook do.
func (u *user) change(set *v1beta1.SidecarSet, how ...func(*v1beta1.SidecarSet)) {
	u.t.Helper()
	u.get(set)
	before := set.DeepCopy()
	for _, h := range how {
		h(set)
	}
	u.hashed(set)
	if err := u.client.Patch(u.t.Context(), set, client.MergeFrom(before)); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) get(o client.Object) {
	u.t.Helper()
	if err := u.client.Get(u.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		u.t.Fatal(err)
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
func (u *user) pod(name string, sets []*v1beta1.SidecarSet, change ...func(*corev1.Pod)) *corev1.Pod {
	u.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: u.namespace, Name: name, Labels: map[string]string{"app": "shop"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	for _, c := range change {
		c(pod)
	}
	for _, set := range sets {
		if set.ResourceVersion != "" { // one that was restored has none
			u.get(set)
		}
	}
	injection, err := sidecar.Inject(pod, parsed(u.t, sets...), sidecar.Options{Now: time.Now()})
	if err != nil {
		u.t.Fatal(err)
	}
	if err := u.client.Create(u.t.Context(), injection.Pod); err != nil {
		u.t.Fatal(err)
	}
	return injection.Pod
}

// fleet makes n pods that are given sets.
func (u *user) fleet(n int, sets ...*v1beta1.SidecarSet) {
	u.t.Helper()
	for i := range n {
		u.pod(fmt.Sprintf("pod-%d", i), sets)
	}
}

// pods of the test, by name.
func (u *user) pods() []corev1.Pod {
	u.t.Helper()
	var list corev1.PodList
	if err := u.client.List(u.t.Context(), &list, client.InNamespace(u.namespace)); err != nil {
		u.t.Fatal(err)
	}
	return list.Items
}

// counted waits for the status of a set: matched, updated, ready, and both.
func (u *user) counted(set *v1beta1.SidecarSet, matched, updated, ready, both int32) {
	u.t.Helper()
	u.until(func() error {
		u.get(set)
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.MatchedPods != matched || s.UpdatedPods != updated ||
			s.ReadyPods != ready || s.UpdatedReadyPods != both {
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
func (u *user) revisions(set *v1beta1.SidecarSet) []*appsv1.ControllerRevision {
	u.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := u.client.List(u.t.Context(), &list, client.InNamespace(u.namespace), client.MatchingLabels{
		v1beta1.SidecarSetNameLabel: set.Name,
	}); err != nil {
		u.t.Fatal(err)
	}
	var all []*appsv1.ControllerRevision
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	revision.Sort(all)
	return all
}

func maxUnavailable(v string) func(*v1beta1.SidecarSet) {
	return func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.Parse(v)) }
}

func partition(v string) func(*v1beta1.SidecarSet) {
	return func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Partition = ptr.To(intstr.Parse(v)) }
}

func paused(is bool) func(*v1beta1.SidecarSet) {
	return func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Paused = is }
}

func environment(value string) func(*v1beta1.SidecarSet) {
	return func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "E", Value: value}} }
}

// uids of pods by name.
func uids(pods []corev1.Pod) map[string]types.UID {
	all := map[string]types.UID{}
	for i := range pods {
		all[pods[i].Name] = pods[i].UID
	}
	return all
}

// marked waits for the condition of all pods.
func (u *user) marked(status corev1.ConditionStatus, reason string) {
	u.t.Helper()
	u.until(func() error {
		pods := u.pods()
		for i := range pods {
			c := lifecycle.ConditionOf(&pods[i], kruise.SidecarSetUpgradable)
			if c == nil || c.Status != status || c.Reason != reason {
				return fmt.Errorf("%s: %+v", pods[i].Name, c)
			}
		}
		return nil
	})
}

func (u *user) runs(want ...string) {
	u.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, images(u.pods())); diff != "" {
		u.t.Errorf("images (-want +got):\n%s", diff)
	}
}

// works waits until in all pods one container works and the other is empty.
func (u *user) works(sidecar, name, image string) {
	u.t.Helper()
	other := sidecar + "-1"
	if name == other {
		other = sidecar + "-2"
	}
	u.until(func() error {
		for _, pod := range u.pods() {
			working, is := map[string]string{}, map[string]string{}
			if err := json.Unmarshal([]byte(pod.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey]),
				&working); err != nil {
				return err
			}
			for _, c := range pod.Spec.Containers {
				is[c.Name] = c.Image
			}
			if working[sidecar] != name || is[name] != image || is[other] != "empty:1" {
				return fmt.Errorf("%s: %v of %v", pod.Name, working, is)
			}
		}
		return nil
	})
}

// annotate changes annotations of a pod behind everybody's back.
func (u *user) annotate(pod string, annotations map[string]string) {
	u.t.Helper()
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		u.t.Fatal(err)
	}
	u.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: pod}}, string(data))
}

func (u *user) annotations(pod string) map[string]string {
	u.t.Helper()
	is := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: pod}}
	u.get(is)
	return is.Annotations
}

func version(v string) func(*v1beta1.SidecarSet) {
	return func(s *v1beta1.SidecarSet) { s.Spec.CustomVersion = v }
}

// kept waits for the revisions of a set to have some numbers.
func (u *user) kept(set *v1beta1.SidecarSet, want ...int64) {
	u.t.Helper()
	u.until(func() error {
		var got []int64
		for _, rev := range u.revisions(set) {
			got = append(got, rev.Revision)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("want revisions %v, got %v", want, got)
		}
		return nil
	})
}

// latest waits for the status to tell of the spec, and gives the revision of it.
func (u *user) latest(set *v1beta1.SidecarSet) string {
	u.t.Helper()
	u.until(func() error {
		if u.get(set); set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("generation %d is not seen", set.Generation)
		}
		return nil
	})
	return set.Status.LatestRevision
}

func (u *user) patch(o client.Object, patch string) {
	u.t.Helper()
	if err := u.client.Patch(u.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		u.t.Fatal(err)
	}
}

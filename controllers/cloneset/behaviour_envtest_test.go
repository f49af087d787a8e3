//go:build envtest

package cloneset_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A partition of 99% lets one pod of four through, and none more; lowering it lets the rest follow.
func TestPartition(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 4, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("99%"))
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if err := settled(set, pods); err != nil {
			return err
		}
		return progressing(set, "CloneSetAvailable")
	})
	b.change(set, image("web:2"))
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if n := running(pods, "web:2"); n != 1 || set.Status.UpdatedAvailableReplicas != 1 || set.Status.ExpectedUpdatedReplicas != 1 {
			return fmt.Errorf("%d pods run the new image, status %+v", n, set.Status)
		}
		return progressing(set, "ProgressPartitionAvailable")
	})
	b.still()
	if n := running(b.pods(set), "web:2"); n != 1 {
		t.Errorf("%d pods run the new image after a while", n)
	}
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
	b.eventually(set, settled)
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error { return progressing(set, "CloneSetAvailable") })
}

// Paused keeps the number of pods, and nothing else.
func TestPaused(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 3, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.Paused = true
	})
	b.eventually(set, settled)
	b.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		s.Spec.Replicas = ptr.To(int32(4))
	})
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if len(pods) != 4 || running(pods, "web:1")+running(pods, "web:2") != 4 || set.Status.AvailableReplicas != 4 {
			return fmt.Errorf("%d pods, status %+v", len(pods), set.Status)
		}
		return nil
	})
	b.still()
	if n := running(b.pods(set), "web:1"); n != 3 {
		t.Errorf("%d pods are as they were, want 3", n)
	}
}

// OnDelete leaves pods alone until they are deleted.
func TestOnDelete(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 3, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType
	})
	b.eventually(set, settled)
	b.change(set, image("web:2"))
	b.still()
	pods := b.pods(set)
	if n := running(pods, "web:1"); n != 3 {
		t.Fatalf("%d pods are as they were, want 3", n)
	}
	if err := b.client.Delete(t.Context(), &pods[0]); err != nil {
		t.Fatal(err)
	}
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if running(pods, "web:2") != 1 || running(pods, "web:1") != 2 {
			return fmt.Errorf("%d of %d pods are new", running(pods, "web:2"), len(pods))
		}
		return nil
	})
}

// Pods that are named go first, with their claims, and their names leave the list.
func TestPodsToDelete(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 3, withClaims)
	b.eventually(set, settled)
	chosen := b.pods(set)[1]
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Replicas = ptr.To(int32(2))
		s.Spec.ScaleStrategy.PodsToDelete = []string{chosen.Name}
	})
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == chosen.UID }) || len(set.Spec.ScaleStrategy.PodsToDelete) > 0 {
			return fmt.Errorf("%s is there, or named in %v", chosen.Name, set.Spec.ScaleStrategy.PodsToDelete)
		}
		return settled(set, pods)
	})
	for _, claim := range b.claims() {
		if claim.Labels[pub.CloneSetInstanceIDKey] == chosen.Labels[pub.CloneSetInstanceIDKey] {
			t.Errorf("claim %s of the deleted pod is still there", claim.Name)
		}
	}
}

// With reuse on, the claims of a pod that somebody deleted serve its replacement, which has the same name.
func TestClaimsAreReused(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 3, func(s *v1beta1.CloneSet) {
		withClaims(s)
		s.Spec.ScaleStrategy.EnablePVCReuse = true
	})
	b.eventually(set, settled)
	before, claims := names(b.pods(set)), claimNames(b.claims())
	for _, pod := range b.pods(set) {
		if err := b.client.Delete(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually(set, settled)
	if after := names(b.pods(set)); !slices.Equal(after, before) {
		t.Errorf("pods %v became %v", before, after)
	}
	if after := claimNames(b.claims()); !slices.Equal(after, claims) {
		t.Errorf("claims %v became %v", claims, after)
	}
}

// A hook holds a pod before its update and before its deletion, until it is taken off.
func TestHooks(t *testing.T) {
	b := start(t, cloneset.Options{})
	hook := map[string]string{"example.com/hook": "true"}
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.Template.Labels["example.com/hook"] = "true"
		s.Spec.Lifecycle = &pub.Lifecycle{
			InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: hook}, PreDelete: &pub.LifecycleHook{LabelsHandler: hook},
		}
	})
	b.eventually(set, settled)
	b.change(set, image("web:2"))
	state := func(want pub.LifecycleState, image string) func(*v1beta1.CloneSet, []corev1.Pod) error {
		return func(_ *v1beta1.CloneSet, pods []corev1.Pod) error {
			if len(pods) != 1 || pods[0].Labels[pub.LifecycleStateKey] != string(want) || running(pods, image) != 1 {
				return fmt.Errorf("labels %v", pods[0].Labels)
			}
			return nil
		}
	}
	b.eventually(set, state(pub.LifecycleStatePreparingUpdate, "web:1"))
	b.unhook(set, `null`)
	b.eventually(set, state(pub.LifecycleStateUpdated, "web:2"))
	b.unhook(set, `"true"`)
	b.eventually(set, state(pub.LifecycleStateNormal, "web:2"))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(0)) })
	b.eventually(set, state(pub.LifecycleStatePreparingDelete, "web:2"))
	b.unhook(set, `null`)
	b.eventually(set, settled)
}

// unhook sets the label of the hook.
func (b *bench) unhook(set *v1beta1.CloneSet, value string) {
	b.Helper()
	for _, pod := range b.pods(set) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.com/hook":`+value+`}}}`))
		if err := b.client.Patch(b.Context(), &pod, patch); err != nil {
			b.Fatal(err)
		}
	}
}

// A pod whose label is edited away is given up and replaced; an orphan is not taken in.
func TestReleaseAndOrphans(t *testing.T) {
	b := start(t, cloneset.Options{})
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "orphan", Labels: map[string]string{"app": "web"}}}
	orphan.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	if err := b.client.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	set := b.create("web", 1, nil)
	two := func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if len(pods) != 2 || set.Status.Replicas != 1 || set.Status.AvailableReplicas != 1 {
			return fmt.Errorf("%d pods, status %+v", len(pods), set.Status)
		}
		return nil
	}
	b.eventually(set, two)
	for _, pod := range b.pods(set) {
		if pod.Name == "orphan" {
			continue
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"app":"gone"}}}`))
		if err := b.client.Patch(t.Context(), &pod, patch); err != nil {
			t.Fatal(err)
		}
		b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(&pod), &pod); err != nil || len(pod.OwnerReferences) > 0 {
				return fmt.Errorf("owners %v, %w", pod.OwnerReferences, err)
			}
			return two(set, pods)
		})
	}
}

func image(name string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func withClaims(s *v1beta1.CloneSet) {
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}}
}

func (b *bench) claims() []corev1.PersistentVolumeClaim {
	b.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := b.client.List(b.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(c corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
}

func running(pods []corev1.Pod, image string) int {
	n := 0
	for i := range pods {
		if s := pods[i].Status.ContainerStatuses; len(s) > 0 && s[0].Image == image && s[0].Ready {
			n++
		}
	}
	return n
}

func progressing(set *v1beta1.CloneSet, reason string) error {
	for _, c := range set.Status.Conditions {
		if c.Type == v1beta1.CloneSetConditionTypeProgressing && c.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("conditions %+v, want %s", set.Status.Conditions, reason)
}

func names(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Name)
	}
	slices.Sort(all)
	return all
}

func claimNames(claims []corev1.PersistentVolumeClaim) []string {
	var all []string
	for i := range claims {
		all = append(all, claims[i].Name)
	}
	slices.Sort(all)
	return all
}

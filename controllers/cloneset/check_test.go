package cloneset_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

const (
	normal          = kruise.LifecycleStateNormal
	preparingNormal = kruise.LifecycleStatePreparingNormal
	preparingUpdate = kruise.LifecycleStatePreparingUpdate
	preparingDelete = kruise.LifecycleStatePreparingDelete
	updating        = kruise.LifecycleStateUpdating

	// unready is the annotation of a pod that the kubelet keeps from being ready.
	unready = "test.kruisekit.dev/unready"
)

// check returns an error for a set and its pods that are not as expected.
type check = func(*v1beta1.CloneSet, []corev1.Pod) error

// all expects several things at once.
func all(checks ...check) check {
	return func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		var errs []error
		for _, c := range checks {
			errs = append(errs, c(set, pods))
		}
		return errors.Join(errs...)
	}
}

// settled expects a set whose status reports that each pod is updated and available.
func settled(set *v1beta1.CloneSet, pods []corev1.Pod) error {
	s, replicas := set.Status, *set.Spec.Replicas
	if s.ObservedGeneration != set.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas ||
		s.AvailableReplicas != replicas || s.UpdatedReadyReplicas != replicas || s.CurrentRevision != s.UpdateRevision ||
		int32(len(pods)) != replicas {
		return fmt.Errorf("%d pods, status %+v", len(pods), s)
	}
	return nil
}

// reason expects a reason of Progressing; empty for no such condition.
func reason(want string) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		got := ""
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.CloneSetConditionTypeProgressing {
				got = c.Reason
			}
		}
		if got != want || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("Progressing is %q, want %q", got, want)
		}
		return nil
	}
}

// images expects numbers of pods with an image, ready or not.
func images(want map[string]int) check {
	return func(_ *v1beta1.CloneSet, pods []corev1.Pod) error {
		got := map[string]int{}
		for i := range pods {
			got[pods[i].Spec.Containers[0].Image]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("images of pods (-want +got):\n%s", diff)
		}
		return nil
	}
}

// counts expects counters of the status.
func counts(replicas, available int32) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if s := set.Status; s.Replicas != replicas || s.AvailableReplicas != available ||
			s.ObservedGeneration != set.Generation {
			return fmt.Errorf("want %d, %d of them available, status %+v", replicas, available, s)
		}
		return nil
	}
}

// fails expects words in the message of a condition; the condition must not exist where they are empty.
func fails(t v1beta1.CloneSetConditionType, words string) check {
	return func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if got := condition(set, t); (got == "") != (words == "") || !strings.Contains(got, words) {
			return fmt.Errorf("condition %s: %q, want %q", t, got, words)
		}
		return nil
	}
}

// condition returns the message of a condition; empty where it does not exist.
func condition(set *v1beta1.CloneSet, t v1beta1.CloneSetConditionType) string {
	for _, c := range set.Status.Conditions {
		if c.Type == t {
			return c.Message
		}
	}
	return ""
}

// running returns the number of ready pods that run an image.
func running(pods []corev1.Pod, image string) int {
	n := 0
	for i := range pods {
		if s := pods[i].Status.ContainerStatuses; len(s) > 0 && s[0].Image == image && s[0].Ready {
			n++
		}
	}
	return n
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

func uids(pods []corev1.Pod) map[string]bool {
	all := map[string]bool{}
	for i := range pods {
		all[string(pods[i].UID)] = true
	}
	return all
}

// numbered returns ids in the order of creations: aa, ab, ac...
func numbered() func() string {
	var n atomic.Int64
	return func() string {
		i := n.Add(1) - 1
		return string([]rune{rune('a' + i/26), rune('a' + i%26)})
	}
}

func inPlace(set *v1beta1.CloneSet) {
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
	}
}

func image(name string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

func partition(n int) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(int32(n)))
	}
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

func twoClaims(s *v1beta1.CloneSet) {
	withClaims(s)
	logs := s.Spec.VolumeClaimTemplates[0].DeepCopy()
	logs.Name = "logs"
	s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, *logs)
}

//go:build envtest

package cloneset_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/requests"
)

// An image update costs four writes a pod, none of which is rejected. A converged set costs none.
func TestWritesOfAnUpdateInPlace(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 10, inPlace)
	b.eventually(set, settled)
	b.still()
	before := uids(b.pods(set))
	b.asked()

	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "web:2" })
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for i := range pods {
			if status := pods[i].Status.ContainerStatuses[0]; status.Image != "web:2" || status.RestartCount != 1 {
				return fmt.Errorf("%s runs %s after %d restarts", pods[i].Name, status.Image, status.RestartCount)
			}
		}
		return settled(set, pods)
	})
	b.still()
	all := b.asked()
	if after := uids(b.pods(set)); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("pods %v became %v", before, after)
	}
	if writes := requests.About(all, "pods/"); len(writes) != 40 {
		t.Errorf("%d requests for 10 pods, want 40: %v", len(writes), writes)
	}
	for _, code := range []string{" 409", " 422", " 500"} {
		if bad := requests.About(all, code); len(bad) > 0 {
			t.Errorf("requests with%s: %v", code, bad)
		}
	}
	if reads := requests.About(all, "GET"); fmt.Sprint(reads) != "[GET clonesets/web 200]" {
		t.Errorf("reads past the cache: %v, want one of the set before its first update", reads)
	}
	t.Logf("%d writes of the status of the set, %d in all",
		len(requests.About(all, "clonesets/")), len(requests.About(all)))
}

// An update that recreates pods costs five writes a pod: three of the new pod, its creation and the deletion of the old
// one.
func TestWritesOfAnUpdateByNewPods(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 5, inPlace)
	b.eventually(set, settled)
	b.still()
	b.asked()
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for i := range pods {
			if len(pods[i].Spec.Containers[0].Env) == 0 {
				return fmt.Errorf("%s is not updated", pods[i].Name)
			}
		}
		return settled(set, pods)
	})
	b.still()
	all := b.asked()
	// On a busy machine a kubelet may write between, and the API server refuses the test of a patch: it is decided again.
	for words, want := range map[[3]string]int{
		{"PATCH", "pods/", " 200"}: 15, {"DELETE", "pods/"}: 5, {"POST", "pods"}: 5,
	} {
		if got := requests.About(all, words[:]...); len(got) != want {
			t.Errorf("%v: %d requests, want %d: %v", words, len(got), want, got)
		}
	}
}

// The API server sets the host port of a pod in the network of its host. That makes no new revision.
func TestHostPorts(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.HostNetwork = true
		s.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
	})
	b.eventually(set, settled)
	if port := b.pods(set)[0].Spec.Containers[0].Ports[0]; port.HostPort != 8080 {
		t.Errorf("port %+v", port)
	}
	b.stays(set, settled)
}

// While the rollout waits, one job pulls the new image with the parallelism of the set. It is deleted when another
// revision replaces the update revision, and when the rollout is complete.
func TestPreDownload(t *testing.T) {
	b := start(t, cloneset.Options{PreDownload: true})
	set := b.create("web", 5, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.ProgressDeadlineSeconds = ptr.To[int32](600)
	})
	b.eventually(set, settled)
	if got := b.decision(set); got != "" {
		t.Errorf("the first revision has %s, but there is nothing to update", got)
	}
	b.asked()
	b.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		partition(1)(s)
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{
			ImagePreDownloadParallelism: ptr.To(intstr.FromString("2")),
		}
	})
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if n := len(set.Status.Conditions); n != 1 || set.Status.Conditions[0].Reason != "ProgressPartitionAvailable" {
			return fmt.Errorf("conditions %v", set.Status.Conditions)
		}
		return nil
	})
	b.still()
	if got := fmt.Sprint(b.jobs()); got != "[web:2 2]" {
		t.Errorf("jobs %s, want one of web:2", got)
	}
	if got := b.decision(set); got != v1beta1.ImagePreDownloadCreatedKey {
		t.Errorf("the revision has %q", got)
	}
	all := b.asked()
	if made := requests.About(all, "POST", "imagepulljobs"); len(made) != 1 {
		t.Errorf("creates: %v, want one", made)
	}
	if reads := requests.About(all, "GET"); fmt.Sprint(reads) != "[GET clonesets/web 200]" {
		t.Errorf("reads past the cache: %v, want one of the set before its first update", reads)
	}

	// A third revision has a job of its own, and that of the second is deleted.
	b.change(set, image("web:3"))
	b.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
		if got := fmt.Sprint(b.jobs()); got != "[web:3 2]" {
			return errors.New("jobs " + got)
		}
		return nil
	})
	b.change(set, partition(0))
	b.eventually(set, settled)
	b.eventually(set, func(*v1beta1.CloneSet, []corev1.Pod) error {
		if left := b.jobs(); len(left) > 0 {
			return fmt.Errorf("jobs %v are left", left)
		}
		return nil
	})
	b.still()
	if deletes := requests.About(b.asked(), "DELETE", "imagepulljobs"); len(deletes) != 2 {
		t.Errorf("%v, want two", deletes)
	}
}

// A rollout completes when the events of pods that change nothing for the set are skipped.
func TestSkipQuiet(t *testing.T) {
	b := start(t, cloneset.Options{SkipQuiet: true})
	set := b.create("web", 5, inPlace)
	b.eventually(set, settled)
	b.change(set, image("web:2"))
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for i := range pods {
			if s := pods[i].Status.ContainerStatuses[0]; s.Image != "web:2" ||
				pods[i].Labels[kruise.LifecycleStateKey] != string(normal) {
				return fmt.Errorf("%s runs %s in state %s", pods[i].Name, s.Image, pods[i].Labels[kruise.LifecycleStateKey])
			}
		}
		return settled(set, pods)
	})
}

//go:build envtest

package cloneset_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// An image update of a pod is four writes, none of them refused, and when all is done there are none.
func TestWritesOfAnUpdateInPlace(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 10, inPlace)
	b.eventually(set, settled)
	b.still()
	before := uids(b.pods(set))
	b.requests.take()

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
	all := b.requests.take()
	if after := uids(b.pods(set)); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("pods %v became %v", before, after)
	}
	if writes := about(all, "/pods/"); len(writes) != 40 {
		t.Errorf("%d requests for 10 pods, want 40: %v", len(writes), writes)
	}
	for _, code := range []string{" 409", " 422", " 500", "GET "} {
		if bad := about(all, code); len(bad) > 0 {
			t.Errorf("requests with%s: %v", code, bad)
		}
	}
	t.Logf("%d writes of the status of the set, %d in all", len(about(all, "/clonesets/")), len(about(all)))
}

func TestWritesOfAnUpdateByNewPods(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 5, inPlace)
	b.eventually(set, settled)
	b.still()
	b.requests.take()
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for i := range pods {
			if len(pods[i].Spec.Containers[0].Env) == 0 {
				return fmt.Errorf("%s is an old one", pods[i].Name)
			}
		}
		return settled(set, pods)
	})
	b.still()
	all := b.requests.take()
	for words, want := range map[[2]string]int{{"PATCH", "/pods/"}: 15, {"DELETE", "/pods/"}: 5, {"POST", "/pods"}: 5} {
		if got := about(all, words[:]...); len(got) != want {
			t.Errorf("%v: %d requests, want %d: %v", words, len(got), want, got)
		}
	}
}

// still waits until nothing is asked of the API server any more.
func (b *bench) still() {
	b.Helper()
	for quiet := 0; quiet < 5; quiet++ {
		b.requests.mu.Lock()
		before := len(b.requests.all)
		b.requests.mu.Unlock()
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // that nothing happens is the thing to see
		b.requests.mu.Lock()
		if len(b.requests.all) != before {
			quiet = 0
		}
		b.requests.mu.Unlock()
	}
}

func uids(pods []corev1.Pod) map[string]bool {
	all := map[string]bool{}
	for i := range pods {
		all[string(pods[i].UID)] = true
	}
	return all
}

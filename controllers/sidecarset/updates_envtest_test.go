//go:build envtest

package sidecarset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/requests"
)

// TestUpdate: a new image, in the pods that there are, at no more writes than it needs.
func TestUpdate(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", maxUnavailable("2"))
	b.fleet(2, set)
	b.counted(set, 2, 2, 2, 2)
	b.Still()
	before := uids(b.pods())
	b.Asked()
	b.change(set, image("mesh:2"))
	b.counted(set, 2, 2, 2, 2)
	b.Still()
	asked := b.Asked()
	if n := len(requests.About(asked, "PATCH", "pods/pod-", " 200")); n != 4 ||
		len(requests.About(asked, "PATCH", "pods/pod-", "/status 200")) != 2 {
		t.Errorf("want a write of each pod and one of its status, got %v", requests.About(asked, "pods/"))
	}
	// The first condition of a pod tests the version of the pod, which a kubelet may have written since: then it is
	// written again, and nothing is read for it.
	if others := len(requests.About(asked, "pods/")) - len(requests.About(asked, "pods/", "/status 422")); others != 4 {
		t.Errorf("%d requests for pods: %v", others, requests.About(asked, "pods/"))
	}
	if n := len(requests.About(asked, "controllerrevisions")); n != 1 {
		t.Errorf("want one new revision, got %v", requests.About(asked, "controllerrevisions"))
	}
	b.runs("mesh=mesh:2", "mesh=mesh:2")
	b.marked(corev1.ConditionTrue, kruise.SidecarSetUpgradableReasonAll)
	if diff := cmp.Diff(before, uids(b.pods())); diff != "" {
		t.Errorf("pods were replaced (-before +after):\n%s", diff)
	}
	// The second time the condition says already what it has to.
	b.change(set, image("mesh:3"))
	b.counted(set, 2, 2, 2, 2)
	b.Still()
	if asked := b.Asked(); len(requests.About(asked, "pods/")) != 2 {
		t.Errorf("want one write of each pod, got %v", requests.About(asked, "pods/"))
	}
	b.Still()
	if asked := b.Asked(); len(asked) != 0 {
		t.Errorf("idle, and asks %v", asked)
	}
}

// TestBadImage: an image that does not run gets no further than the budget; a good one reaches all pods.
func TestBadImage(t *testing.T) {
	for name, c := range map[string]struct {
		pods    int
		budget  string
		updated int32
	}{"one of two": {2, "1", 1}, "half of four": {4, "50%", 2}} {
		t.Run(name, func(t *testing.T) {
			b := start(t, sidecarset.Options{Stalled: 2 * time.Second})
			set := b.create("mesh", maxUnavailable(c.budget))
			b.fleet(c.pods, set)
			n := int32(c.pods)
			b.counted(set, n, n, n, n)
			b.change(set, image("mesh:broken"))
			b.counted(set, n, c.updated, n-c.updated, 0)
			b.Still()
			b.counted(set, n, c.updated, n-c.updated, 0)
			b.Until(func() error { // nothing changes any more, and an event reports it nevertheless
				if got := b.events("UpdateLimited"); got != 1 {
					return fmt.Errorf("%d events", got)
				}
				return nil
			})
			b.change(set, image("mesh:2"))
			b.counted(set, n, n, n, n)
			if got := b.events("UpdateLimited"); got != 1 {
				t.Errorf("%d events of updates that stand still", got)
			}
		})
	}
}

// TestNotUpgradable: what cannot change in a pod is reported once, and leaves the pods that there are. Pods that come
// later have it, and are updated as ever.
func TestNotUpgradable(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh")
	b.fleet(2, set)
	b.counted(set, 2, 2, 2, 2)
	b.change(set, environment("1"))
	b.counted(set, 2, 0, 2, 0)
	b.marked(corev1.ConditionFalse, kruise.SidecarSetUpgradableReasonImmutableField)
	b.Until(func() error {
		if n := b.events("NotUpgradablePods"); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	b.pod("fresh", []*v1beta1.SidecarSet{set})
	b.counted(set, 3, 1, 3, 1)
	b.change(set, image("mesh:2"))
	b.counted(set, 3, 1, 3, 1)
	b.Until(func() error {
		if got := images(b.pods()); !slices.Equal(got, []string{"mesh=mesh:1", "mesh=mesh:1", "mesh=mesh:2"}) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	b.Still()
	if n := b.events("NotUpgradablePods"); n != 1 {
		t.Errorf("the same is reported %d times", n)
	}
}

// TestManySets: sets that write the same pods at the same time do not undo what the others wrote.
func TestManySets(t *testing.T) {
	b := start(t, sidecarset.Options{})
	var sets []*v1beta1.SidecarSet
	for i := range 5 {
		sets = append(sets, b.create(fmt.Sprintf("s%d", i), maxUnavailable("100%")))
	}
	b.fleet(6, sets...)
	for _, set := range sets {
		b.counted(set, 6, 6, 6, 6)
	}
	for _, set := range sets {
		b.change(set, func(s *v1beta1.SidecarSet) {
			s.Spec.Containers[0].Image = strings.TrimSuffix(s.Spec.Containers[0].Image, "1") + "2"
		})
	}
	for _, set := range sets {
		b.counted(set, 6, 6, 6, 6)
	}
	b.Until(func() error {
		pods := b.pods()
		for i := range pods {
			if c := lifecycle.ConditionOf(&pods[i], kruise.SidecarSetUpgradable); c == nil ||
				strings.Count(c.Message, "true") != len(sets) {
				return fmt.Errorf("%s: %+v", pods[i].Name, c)
			}
			if n := strings.Count(pods[i].Annotations[kruise.SidecarSetInPlaceUpdateStateKey],
				"lastContainerStatuses"); n != len(sets) {
				return fmt.Errorf("%s: %d updates recorded", pods[i].Name, n)
			}
		}
		return nil
	})
	for _, pod := range b.pods() {
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name != "main" && s.RestartCount != 1 {
				t.Errorf("%s/%s restarted %d times", pod.Name, s.Name, s.RestartCount)
			}
		}
	}
}

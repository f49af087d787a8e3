//go:build envtest

package sidecarset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
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

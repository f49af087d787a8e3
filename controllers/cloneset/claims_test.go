package cloneset_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/requests"
)

// With reuse, claims outlive deleted pods. Without reuse, the new pods get new claims.
func TestClaimReuseIsSwitchedOff(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 4, func(s *v1beta1.CloneSet) {
		twoClaims(s)
		s.Spec.ScaleStrategy.EnablePVCReuse = true
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	available := all(settled, reason("CloneSetAvailable"))
	m.eventually(set, available)
	pods, claims := names(m.pods(set)), claimNames(m.claims())
	for _, claim := range m.claims() {
		if owner := metav1.GetControllerOf(&claim); owner == nil || owner.Kind != "CloneSet" ||
			!slices.Contains(pods, "web-"+claim.Labels[kruise.CloneSetInstanceIDKey]) {
			t.Errorf("claim %s of %v, labels %v", claim.Name, owner, claim.Labels)
		}
	}
	if len(claims) != 8 {
		t.Errorf("claims %v", claims)
	}
	before := uids(m.pods(set))
	replaced := func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for i := range pods {
			if before[string(pods[i].UID)] {
				return fmt.Errorf("%s is not new", pods[i].Name)
			}
		}
		return available(set, pods)
	}
	m.delete(m.pods(set)...)
	m.eventually(set, replaced)
	if now := names(m.pods(set)); !slices.Equal(now, pods) || !slices.Equal(claimNames(m.claims()), claims) {
		t.Errorf("pods %v became %v, claims %v became %v", pods, now, claims, claimNames(m.claims()))
	}
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.EnablePVCReuse = false })
	m.stays(set, available)
	before = uids(m.pods(set))
	m.delete(m.pods(set)...)
	m.eventually(set, replaced)
	m.Still()
	own := m.claimsOf(set.UID)
	if len(own) != 8 || slices.ContainsFunc(own, func(name string) bool { return slices.Contains(claims, name) }) {
		t.Errorf("claims %v became %v", claims, own)
	}
}

// A changed claim template recreates pods together with a change of the pod template, and never by itself.
func TestRecreateOnClaimChange(t *testing.T) {
	m := newModel(t, cloneset.Options{RecreateOnClaimChange: true})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		withClaims(s)
	})
	m.eventually(set, settled)
	resize := func(size string) func(*v1beta1.CloneSet) {
		return func(s *v1beta1.CloneSet) {
			s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse(size)}
		}
	}
	then := func(why string, recreated bool, size string, how ...func(*v1beta1.CloneSet)) {
		t.Helper()
		before := m.pods(set)[0]
		m.change(set, func(s *v1beta1.CloneSet) {
			for _, h := range how {
				h(s)
			}
		})
		m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
			if running(pods, set.Spec.Template.Spec.Containers[0].Image) != 1 {
				return fmt.Errorf("%d pods, status %+v", len(pods), set.Status)
			}
			return settled(set, pods)
		})
		m.Still()
		if now := m.pods(set)[0]; (now.UID != before.UID) != recreated {
			t.Errorf("%s: pod %s became %s", why, before.Name, now.Name)
		}
		if got := m.claims(); len(got) != 1 || got[0].Spec.Resources.Requests.Storage().String() != size {
			t.Errorf("%s: %d claims, want one of %s", why, len(got), size)
		}
	}
	then("an image alone is changed in place", false, "1Gi", image("web:2"))
	then("a claim and an image make a new pod", true, "2Gi", image("web:3"), resize("2Gi"))
	then("a claim alone makes nothing", false, "2Gi", resize("3Gi"))
	then("and counts with the next image", true, "3Gi", image("web:4"))
	then("an older image, with the claim of today, comes in place: its revision is brought up to date", false, "3Gi",
		image("web:1"))
	then("back in place", false, "3Gi", image("web:4"))
	m.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	})
	then("InPlaceOnly looks at no claim", false, "3Gi", image("web:5"), resize("4Gi"))
	then("InPlaceOnly, back to an earlier image", false, "3Gi", image("web:4"), resize("5Gi"))
}

// A manager starts with a cache that shows the claim of a pod and not yet the pod. The claim stays, also where no pod
// is to be created.
func TestClaimsOfUnseenPods(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		change func(*v1beta1.CloneSet)
	}{
		"creation is limited": {
			"no pod may be unavailable, so that none is created",
			func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(0)) },
		},
		"scaled in": {
			"the pods that the cache shows are enough", func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(1)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cloneset.Options{})
			set := m.create("web", 1, withClaims)
			m.eventually(set, settled)
			cache := m.Server.Lagging()
			cache.Freeze()
			cache.Only = func(o runtime.Object) bool { _, is := o.(*corev1.PodList); return is }
			m.scale(set, 2)
			m.eventually(set, settled)
			m.Live.Reads()
			m.start(cloneset.Options{}, func(client.WithWatch) client.WithWatch { return cache })
			m.change(set, c.change)
			m.Server.Requests()
			m.Still()
			cache.Thaw()
			m.eventually(set, settled)
			if asked := m.Server.Requests(); len(requests.About(asked, "POST persistentvolumeclaims")) > 0 {
				t.Errorf("%s: requests %v", c.why, asked)
			}
			reads := slices.DeleteFunc(m.Live.Reads(), func(read string) bool { return read != "list PodList" })
			if len(reads) != 1 {
				t.Errorf("%s: the pods are listed %d times past the cache, want once", c.why, len(reads))
			}
			for _, pod := range m.pods(set) {
				if id := pod.Labels[kruise.CloneSetInstanceIDKey]; !slices.Contains(m.claimsOf(set.UID), "data-web-"+id) {
					t.Errorf("%s: pod %s runs, and claims are %v", c.why, pod.Name, m.claimsOf(set.UID))
				}
			}
		})
	}
}

//go:build envtest

package cloneset_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

func twoClaims(s *v1beta1.CloneSet) {
	withClaims(s)
	logs := s.Spec.VolumeClaimTemplates[0].DeepCopy()
	logs.Name = "logs"
	s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, *logs)
}

// claimsOf are the names of the claims that an object controls.
func (b *bench) claimsOf(owner types.UID) []string {
	b.Helper()
	return claimNames(slices.DeleteFunc(b.claims(), func(c corev1.PersistentVolumeClaim) bool {
		ref := metav1.GetControllerOf(&c)
		return ref == nil || ref.UID != owner
	}))
}

// Of two ids that are needed, one is that of a claim no pod has; the other is new. A claim that exists is not created again.
func TestIDsOfClaimsComeFirst(t *testing.T) {
	b := start(t, cloneset.Options{NewID: numbered()})
	set := b.create("web", 2, func(s *v1beta1.CloneSet) {
		withClaims(s)
		s.Spec.ScaleStrategy.EnablePVCReuse = true
	})
	b.eventually(set, settled)
	left := b.claims()[0].DeepCopy()
	left.ObjectMeta = metav1.ObjectMeta{
		Namespace: b.namespace, Name: "data-web-zz", Labels: map[string]string{pub.CloneSetInstanceIDKey: "zz"}, OwnerReferences: left.OwnerReferences,
	}
	if err := b.client.Create(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	b.still()
	b.requests.take()
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(4)) })
	b.eventually(set, settled)
	if got, want := names(b.pods(set)), []string{"web-aa", "web-ab", "web-ac", "web-zz"}; !slices.Equal(got, want) {
		t.Errorf("pods %v, want %v", got, want)
	}
	if made := about(b.requests.take(), "POST", "/persistentvolumeclaims"); len(made) != 1 {
		t.Errorf("claims: %v", made)
	}
}

// The claims of deleted pods go, the others stay.
func TestClaimsGoWithTheirPods(t *testing.T) {
	b := start(t, cloneset.Options{NewID: numbered()})
	set := b.create("web", 3, withClaims)
	b.eventually(set, settled)
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Replicas = ptr.To(int32(1))
		s.Spec.ScaleStrategy.PodsToDelete = []string{"web-aa", "web-ac"}
	})
	b.eventually(set, settled)
	if got := claimNames(b.claims()); !slices.Equal(got, []string{"data-web-ab"}) {
		t.Errorf("claims %v", got)
	}
}

// Claims outlive pods that somebody deletes, with reuse; without it there are new ones.
func TestClaimReuseIsSwitchedOff(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 4, func(s *v1beta1.CloneSet) {
		twoClaims(s)
		s.Spec.ScaleStrategy.EnablePVCReuse = true
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	available := all(settled, reason("CloneSetAvailable"))
	b.eventually(set, available)
	pods, claims := names(b.pods(set)), claimNames(b.claims())
	for _, claim := range b.claims() {
		if owner := metav1.GetControllerOf(&claim); owner == nil || owner.Kind != "CloneSet" || !slices.Contains(pods, "web-"+claim.Labels[pub.CloneSetInstanceIDKey]) {
			t.Errorf("claim %s of %v, labels %v", claim.Name, owner, claim.Labels)
		}
	}
	if len(claims) != 8 {
		t.Errorf("claims %v", claims)
	}
	before := uids(b.pods(set))
	anew := func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		for i := range pods {
			if before[string(pods[i].UID)] {
				return fmt.Errorf("%s is an old one", pods[i].Name)
			}
		}
		return available(set, pods)
	}
	b.delete(b.pods(set)...)
	b.eventually(set, anew)
	if now := names(b.pods(set)); !slices.Equal(now, pods) || !slices.Equal(claimNames(b.claims()), claims) {
		t.Errorf("pods %v became %v, claims %v became %v", pods, now, claims, claimNames(b.claims()))
	}
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.EnablePVCReuse = false })
	b.stays(set, available)
	before = uids(b.pods(set))
	b.delete(b.pods(set)...)
	b.eventually(set, anew)
	b.still()
	own := b.claimsOf(set.UID)
	if len(own) != 8 || slices.ContainsFunc(own, func(name string) bool { return slices.Contains(claims, name) }) {
		t.Errorf("claims %v became %v", claims, own)
	}
}

// Without reuse, claims of pods that are on their way out are handed to them.
func TestClaimsAreHandedOver(t *testing.T) {
	b := start(t, cloneset.Options{NewID: numbered()})
	set := b.create("web", 3, func(s *v1beta1.CloneSet) {
		withClaims(s)
		s.Spec.Template.Finalizers = []string{"example.com/stay"}
	})
	b.eventually(set, settled)
	leaving := b.pods(set)[:2]
	b.delete(leaving...)
	b.eventually(set, settled)
	if own := b.claimsOf(set.UID); !slices.Equal(own, []string{"data-web-ac", "data-web-ad", "data-web-ae"}) {
		t.Errorf("claims %v of the set", own)
	}
	for _, pod := range leaving {
		if own := b.claimsOf(pod.UID); !slices.Equal(own, []string{"data-" + pod.Name}) {
			t.Errorf("claims %v of %s", own, pod.Name)
		}
	}
	b.letGo(append(leaving, b.pods(set)...))
}

// letGo takes the finalizers off pods, so that they can be deleted.
func (b *bench) letGo(pods []corev1.Pod) {
	b.Helper()
	for i := range pods {
		b.patch(&pods[i], `{"finalizers":null}`)
	}
}

// A pod that has finished never runs again, and makes room. With reuse its claims serve its successor.
func TestFinishedPods(t *testing.T) {
	for name, c := range map[string]struct {
		why   string
		reuse bool
		want  []string
	}{
		"claims are reused":     {"the successor has the name and the claims", true, []string{"web-aa", "web-ab"}},
		"claims are not reused": {"the successor has its own", false, []string{"web-ab", "web-ac"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, cloneset.Options{NewID: numbered()})
			set := b.create("web", 2, func(s *v1beta1.CloneSet) {
				withClaims(s)
				s.Spec.ScaleStrategy.EnablePVCReuse = c.reuse
				s.Spec.Template.Spec.SchedulerName = "nobody" // so that no kubelet says that it runs
			})
			b.eventually(set, counts(2, 0))
			evicted := b.pods(set)[0]
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed","reason":"Evicted"}}`))
			if err := b.client.Status().Patch(t.Context(), &evicted, patch); err != nil {
				t.Fatal(err)
			}
			b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == evicted.UID }) {
					return fmt.Errorf("%s is still there", evicted.Name)
				}
				return counts(2, 0)(set, pods)
			})
			b.still()
			if got := names(b.pods(set)); !slices.Equal(got, c.want) {
				t.Errorf("%s: pods %v, want %v", c.why, got, c.want)
			}
		})
	}
}

// A changed claim template counts with a change of the pods, and by itself not at all.
func TestRecreateOnClaimChange(t *testing.T) {
	b := start(t, cloneset.Options{RecreateOnClaimChange: true})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		withClaims(s)
	})
	b.eventually(set, settled)
	resize := func(size string) func(*v1beta1.CloneSet) {
		return func(s *v1beta1.CloneSet) {
			s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse(size)}
		}
	}
	then := func(why string, anew bool, size string, how ...func(*v1beta1.CloneSet)) {
		t.Helper()
		before := b.pods(set)[0]
		b.change(set, func(s *v1beta1.CloneSet) {
			for _, h := range how {
				h(s)
			}
		})
		b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
			if running(pods, set.Spec.Template.Spec.Containers[0].Image) != 1 {
				return fmt.Errorf("%d pods, status %+v", len(pods), set.Status)
			}
			return settled(set, pods)
		})
		b.still()
		if now := b.pods(set)[0]; (now.UID != before.UID) != anew {
			t.Errorf("%s: pod %s became %s", why, before.Name, now.Name)
		}
		if got := b.claims(); len(got) != 1 || got[0].Spec.Resources.Requests.Storage().String() != size {
			t.Errorf("%s: %d claims, want one of %s", why, len(got), size)
		}
	}
	then("an image alone is changed in place", false, "1Gi", image("web:2"))
	then("a claim and an image make a new pod", true, "2Gi", image("web:3"), resize("2Gi"))
	then("a claim alone makes nothing", false, "2Gi", resize("3Gi"))
	then("and counts with the next image", true, "3Gi", image("web:4"))
	then("an older image, with the claim of today, comes in place: its revision is brought up to date", false, "3Gi", image("web:1"))
	then("back in place", false, "3Gi", image("web:4"))
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	})
	then("InPlaceOnly looks at no claim", false, "3Gi", image("web:5"), resize("4Gi"))
	then("InPlaceOnly, back to an earlier image", false, "3Gi", image("web:4"), resize("5Gi"))
}

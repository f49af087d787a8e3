//go:build envtest

package nodeimage_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/requests"
)

// upkeep is how tags, owners and secrets leave.
func upkeep() map[string]func(*bench) {
	return map[string]func(*bench){
		"owners":               owners,
		"only who is meant":    onlyWhoIsMeant,
		"gone while away":      goneWhileAway,
		"time to live":         timeToLive,
		"secrets":              secrets,
		"what no image can be": malformed,
		"names that are none":  noNames,
	}
}

// Who is gone is no owner any more, and a tag without those who asked for it leaves.
func owners(b *bench) {
	a, gone := b.job("a"), b.job("gone")
	b.remove(gone)
	impostor := a.DeepCopy()
	impostor.UID = "another"
	b.node("1")
	b.image("1", b.tag("1", a, gone), b.tag("2", gone), b.tag("3"), b.tag("4", impostor), b.tag("5"), b.tag("6"),
		func(n *v1beta1.NodeImage) {
			tags := n.Spec.Images["nginx"].Tags
			tags[4].CreatedAt = nil
			tags[5].OwnerReferences = []corev1.ObjectReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: b.Namespace, Name: "gone", UID: "x",
			}}
		})
	b.start(nodeimage.Options{})
	image := b.eventually("1", lists("nginx:1 nginx:3 nginx:6"))
	if o := image.Spec.Images["nginx"].Tags[0].OwnerReferences; len(o) != 1 || o[0].UID != a.UID {
		b.Errorf("owners of nginx:1 are %v", o)
	}
	b.Still()
	b.Asked()
	b.remove(a)
	b.eventually("1", lists("nginx:3 nginx:6"))
	b.Still()
	if asked := b.Asked(); len(asked) != 1 || len(requests.About(asked, "PATCH nodeimages/")) != 1 {
		b.Errorf("a job that was seen to go took %q", asked)
	}
}

// A deleted job wakes the nodes that it told something, and no others.
func onlyWhoIsMeant(b *bench) {
	b.start(nodeimage.Options{})
	a, other := b.job("a"), b.job("other")
	for i := range 6 {
		short := fmt.Sprint(i)
		b.node(short)
		image := b.eventually(short, exists)
		owner := other
		if i < 2 {
			owner = a
		}
		b.looked(short, func() { change(b, image, b.tag("1", owner)) })
	}
	b.Still()
	before := map[int]int{}
	for i := range 6 {
		before[i] = b.passes.of(b.name(fmt.Sprint(i)))
	}
	b.Asked()
	b.remove(a)
	b.eventually("0", lists(""))
	b.eventually("1", lists(""))
	b.Still()
	for i := 2; i < 6; i++ {
		if n := b.passes.of(b.name(fmt.Sprint(i))); n != before[i] {
			b.Errorf("node %d, which the job told nothing, was looked at %d times", i, n-before[i])
		}
	}
	if asked := b.Asked(); len(asked) != 2 || len(requests.About(asked, "PATCH")) != 2 {
		b.Errorf("two tags took %q", asked)
	}
}

// A job that was deleted while no reconciler ran is asked for once, and its tags leave.
func goneWhileAway(b *bench) {
	stop := b.start(nodeimage.Options{})
	job := b.job("a")
	for i := range 4 {
		short := fmt.Sprint(i)
		b.node(short)
		image := b.eventually(short, exists)
		b.looked(short, func() { change(b, image, b.tag("1", job), b.tag("2")) })
	}
	b.Still()
	stop()
	b.remove(job)
	b.Asked()
	b.start(nodeimage.Options{})
	for i := range 4 {
		b.eventually(fmt.Sprint(i), lists("nginx:2"))
	}
	b.Still()
	asked := b.Asked()
	// Two workers may ask at the same moment.
	if reads := requests.About(asked, "GET", "imagepulljobs/a 404"); len(reads) < 1 || len(reads) > 2 ||
		len(asked) != len(reads)+4 {
		b.Errorf("asked %q", asked)
	}
}

// A tag that has been done for long enough leaves, and its image with it.
func timeToLive(b *bench) {
	b.start(nodeimage.Options{})
	b.daemons(func(imagepull.Reference) bool { return false })
	node := b.node("1")
	image := b.eventually("1", exists)
	change(b, image, b.tag("1"), b.tag("2"), func(n *v1beta1.NodeImage) {
		for i := range n.Spec.Images["nginx"].Tags {
			n.Spec.Images["nginx"].Tags[i].PullPolicy = &v1beta1.ImageTagPullPolicy{
				TTLSecondsAfterFinished: ptr.To(int32(3600 * (i + 1))),
			}
		}
	})
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if n.Status.Succeeded != 2 {
			return fmt.Errorf("status %+v", n.Status)
		}
		return lists("nginx:1 nginx:2")(n)
	})
	b.clock.advance(90 * time.Minute)
	b.touch(node)
	b.eventually("1", lists("nginx:2"))
	b.clock.advance(time.Hour)
	b.touch(node)
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if len(n.Spec.Images) > 0 {
			return fmt.Errorf("images %v", n.Spec.Images)
		}
		return nil
	})
	// No event comes now: the reconciler comes back by itself.
	b.clock.ahead.Store(0)
	change(b, image, b.tag("3"), func(n *v1beta1.NodeImage) {
		n.Spec.Images["nginx"].Tags[0].PullPolicy = &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: ptr.To[int32](1)}
	})
	b.eventually("1", lists(""))
}

// Secrets that daemons may read and that do not exist are no longer named, unless their mode says to keep them.
func secrets(b *bench) {
	b.start(nodeimage.Options{SecretNamespace: b.Namespace})
	here := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "here"}}
	if err := b.Client.Create(b.Context(), here); err != nil {
		b.Fatal(err)
	}
	b.node("1")
	image := b.eventually("1", exists)
	b.Still()
	b.Asked()
	change(b, image, b.tag("1"), func(n *v1beta1.NodeImage) {
		nginx := n.Spec.Images["nginx"]
		nginx.PullSecrets = []v1beta1.ReferenceObject{
			{Namespace: b.Namespace, Name: "gone"},
			{Namespace: b.Namespace, Name: "gone", Mode: v1beta1.ReferenceObjectModeBatch},
			{Namespace: b.Namespace, Name: "here"},
			{Namespace: "elsewhere", Name: "unknown"},
			{Namespace: b.Namespace},
			{Name: "nowhere"},
		}
		n.Spec.Images["nginx"] = nginx
	})
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		var all []string
		for _, s := range n.Spec.Images["nginx"].PullSecrets {
			all = append(all, strings.TrimPrefix(s.Namespace, b.Namespace)+"/"+s.Name+string(s.Mode))
		}
		if got := strings.Join(all, " "); got != "/gonebatch /here elsewhere/unknown /nowhere" {
			return errors.New(got)
		}
		return nil
	})
	b.Still()
	asked := b.Asked()
	if len(requests.About(asked, "secrets/gone 404")) != 1 || len(requests.About(asked, "secrets/here 200")) != 1 ||
		len(requests.About(asked, "PATCH")) != 1 || len(asked) != 3 {
		b.Errorf("asked %q", asked)
	}
	for tag := range 3 {
		b.looked("1", func() { change(b, image, b.tag(fmt.Sprint(tag+2))) })
	}
	b.Still()
	if asked := b.Asked(); len(asked) > 0 {
		b.Errorf("asked again: %q", asked)
	}
}

// The API server takes times that Go does not. Such a NodeImage says so, follows its node, and disturbs no other.
func malformed(b *bench) {
	odd := b.image("odd", b.tag("1"))
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("NodeImage"))
	raw.SetName(odd.Name)
	patch := `{"spec":{"images":{"nginx":{"tags":[{"tag":"1","createdAt":"2026-01-01t00:00:00z"}]}}}}`
	if err := b.Client.Patch(b.Context(), raw,
		client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		b.Fatal(err)
	}
	node := b.node("odd")
	b.start(nodeimage.Options{})
	b.node("even")
	b.eventually("even", exists)
	b.Until(func() error {
		if told := b.events("InvalidSpec"); len(told) == 0 ||
			!strings.Contains(told[0], "createdAt") && !strings.Contains(told[0], "2026-01-01t") {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
	change(b, node, func(n *corev1.Node) { n.Labels["zone"] = "b" })
	b.Until(func() error {
		if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(odd), raw); err != nil {
			return err
		}
		if text := fmt.Sprint(raw.Object["spec"]); raw.GetLabels()["zone"] != "b" || !strings.Contains(text, "2026-01-01t") {
			return fmt.Errorf("%v %s", raw.GetLabels(), text)
		}
		return nil
	})
	b.remove(node)
	b.Until(func() error {
		if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(odd), raw); client.IgnoreNotFound(err) != nil ||
			err == nil {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

// Owners that no job can be are gone, and asking for them stops nothing.
func noNames(b *bench) {
	b.start(nodeimage.Options{})
	b.node("1")
	image := b.eventually("1", exists)
	nobody := func(namespace, name string) *v1beta1.ImagePullJob {
		return &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	change(b, image, b.tag("1", nobody("", "a")), b.tag("2", nobody(b.Namespace, "")), b.tag("3", nobody("a/b", "..")),
		b.tag("4", nobody(b.Namespace, "No Name")), b.tag("5"))
	b.eventually("1", lists("nginx:5"))
}

//go:build envtest

package nodeimage_test

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/test/requests"
)

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

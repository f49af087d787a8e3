//go:build envtest

package nodeimage_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/test/requests"
)

// A NodeImage is made, relabelled and deleted by one write each, and nothing else is asked, but for a last look at the
// node.
func oneWriteEach(b *bench) {
	b.start(nodeimage.Options{})
	nodes := []*corev1.Node{b.node("1"), b.node("2"), b.node("3")}
	for _, n := range nodes {
		b.eventually(strings.TrimPrefix(n.Name, b.Namespace+"-"), func(i *v1beta1.NodeImage) error {
			if i.Labels["zone"] != "a" {
				return fmt.Errorf("labels %v", i.Labels)
			}
			return nil
		})
	}
	b.Still()
	if asked := b.Asked(); len(asked) != 3 || len(requests.About(asked, "POST nodeimages 201")) != 3 {
		b.Errorf("three nodes took %q", asked)
	}
	change(b, nodes[0], func(n *corev1.Node) {
		n.Labels["zone"] = "b"
		n.Labels["new"] = "label"
	})
	b.eventually("1", func(i *v1beta1.NodeImage) error {
		if !maps.Equal(i.Labels, nodes[0].Labels) {
			return fmt.Errorf("labels %v", i.Labels)
		}
		return nil
	})
	change(b, nodes[0], func(n *corev1.Node) { delete(n.Labels, "new") })
	b.eventually("1", func(i *v1beta1.NodeImage) error {
		if _, is := i.Labels["new"]; is {
			return fmt.Errorf("labels %v", i.Labels)
		}
		return nil
	})
	b.Still()
	if asked := b.Asked(); len(asked) != 2 || len(requests.About(asked, "PATCH", " 200")) != 2 {
		b.Errorf("two changes of labels took %q", asked)
	}
	b.remove(nodes[1])
	b.gone("2")
	b.Still()
	asked := b.Asked()
	if len(asked) != 2 || len(requests.About(asked, "GET nodes/")) != 1 ||
		len(requests.About(asked, "DELETE nodeimages/", " 200")) != 1 {
		b.Errorf("the deletion took %q", asked)
	}
}

// What a kubelet and a daemon write all the time is not looked at.
func heartbeats(b *bench) {
	b.start(nodeimage.Options{})
	node := b.node("1")
	image := b.eventually("1", exists)
	change(b, image, b.tag("1"))
	pulling := v1beta1.ImageTagStatus{Tag: "1", Phase: v1beta1.ImagePhasePulling}
	b.looked("1", func() {
		changeStatus(b, image, func(n *v1beta1.NodeImage) {
			n.Status.Desired = 1
			n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{pulling}}}
		})
	})
	b.Still()
	before := b.passes.of(node.Name)
	for i := range int32(5) {
		changeStatus(b, node, func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Duration(i) * time.Hour))
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprint("nginx:", i)}})
		})
		changeStatus(b, image, func(n *v1beta1.NodeImage) { n.Status.ImageStatuses["nginx"].Tags[0].Progress = 10 * (i + 1) })
	}
	// A last change that counts comes after them in both watches.
	b.looked("1", func() { b.touch(node) })
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if !maps.Equal(n.Labels, node.Labels) {
			return errors.New("labels are old")
		}
		return nil
	})
	b.Still()
	if n := b.passes.of(node.Name) - before; n > 2 {
		b.Errorf("%d passes, want the one of the labels and the one of their echo", n)
	}
}

// A node of the same name is another one. What the first was to pull is forgotten.
func comeBack(b *bench) {
	b.start(nodeimage.Options{})
	node := b.node("1")
	first := b.eventually("1", exists)
	change(b, first, b.tag("1"))
	b.remove(node)
	b.gone("1")
	b.node("1")
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if n.UID == first.UID || len(n.Spec.Images) > 0 {
			return fmt.Errorf("%s lists %q", n.UID, tags(n))
		}
		return nil
	})
	// One that is held by a finalizer gives way when it is gone.
	node = b.node("2")
	held := b.eventually("2", exists)
	change(b, held, func(n *v1beta1.NodeImage) { n.Finalizers = []string{"test.kruisekit.dev/hold"} })
	b.remove(node)
	b.Until(func() error {
		if refresh(b, held); held.DeletionTimestamp == nil {
			return errors.New("is not deleted")
		}
		return nil
	})
	b.node("2")
	change(b, held, func(n *v1beta1.NodeImage) { n.Finalizers = nil })
	b.eventually("2", func(n *v1beta1.NodeImage) error {
		if n.UID == held.UID {
			return errors.New("is the old one")
		}
		return nil
	})
}

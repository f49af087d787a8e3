//go:build envtest

package nodeimage_test

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

// Whichever writes fail, before or after the API server applied them, each node has one NodeImage, tags are removed
// with their jobs alone, and the answers of daemons count.
func faults(b *bench) {
	const runs = 20
	f := b.Faults(0)
	b.startWith(nodeimage.Options{}, func(c client.WithWatch) client.WithWatch { return podbench.Writes(c, f.Do) })
	b.daemons(func(ref imagepull.Reference) bool { return ref.Tag == "2" })
	stays, goes := b.job("stays"), b.job("goes")
	nodes := map[string]*corev1.Node{}
	for i := range runs {
		nodes[fmt.Sprint(i)] = b.node(fmt.Sprint(i))
	}
	for short := range nodes {
		image := b.eventually(short, exists)
		change(b, image, b.tag("1", stays, goes), b.tag("2", stays), b.tag("3", goes))
		change(b, nodes[short], func(n *corev1.Node) { n.Labels["zone"] = "b" })
	}
	b.remove(goes)
	last := fmt.Sprint(runs - 1)
	b.remove(nodes[last])
	delete(nodes, last)
	b.gone(last)
	for short, node := range nodes {
		b.eventually(short, func(n *v1beta1.NodeImage) error {
			if !maps.Equal(n.Labels, node.Labels) || n.Status.Succeeded != 1 || n.Status.Failed != 1 {
				return fmt.Errorf("labels %v, status %+v", n.Labels, n.Status)
			}
			return lists("nginx:1 nginx:2")(n)
		})
	}
	b.Still()
	if made := requests.About(b.Asked(), "POST nodeimages 201"); len(made) != runs {
		b.Errorf("%d were made, want %d", len(made), runs)
	}
}

//go:build envtest

package nodeimage_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// Nodes have no namespace, so that the tests have a control plane of their own, and each its own label.
func TestNodeImages(t *testing.T) {
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_nodeimages.yaml", "../../config/crd/bases/apps.kruise.io_imagepulljobs.yaml",
	}})
	for name, test := range map[string]func(*bench){
		"one write each": oneWriteEach, "heartbeats are no news": heartbeats, "nodes that come back": comeBack,
		"only who is meant": onlyWhoIsMeant, "what no image can be": malformed, "names that are none": noNames,
		"silent node": silentNode, "a node that stays not ready": notReadyNode,
		"a daemon's answer is not lost": answerInTime, "a new tag is not lost": tagInTime,
		"gone before it was seen": goneUnseen, "a lagging cache": laggingCache, "no pull jobs": noPullJobs, "faults": faults,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{Bench: podbench.On(t, c, scheme), passes: &passes{}, clock: &clock{}}
			mine := labels.SelectorFromSet(labels.Set{benchKey: b.Namespace})
			b.Cache.ByObject = map[client.Object]cache.ByObject{
				&corev1.Node{}: {Label: mine}, &v1beta1.NodeImage{}: {Label: mine},
			}
			test(b)
		})
	}
}

// bench is what one test works at.
type bench struct {
	*podbench.Bench

	passes *passes
	clock  *clock
}

// benchKey is the label of the nodes of one test.
const benchKey = "test.kruisekit.dev/bench"

// start starts a reconciler of the test's nodes, and returns a function that stops it. Nodes get their NodeImage at
// once unless the options have another delay.
func (b *bench) start(o nodeimage.Options) (stop func()) {
	b.Helper()
	return b.startWith(o, func(c client.WithWatch) client.WithWatch { return c })
}

// startWith gives the reconciler another client.
func (b *bench) startWith(o nodeimage.Options, wrap func(client.WithWatch) client.WithWatch) (stop func()) {
	b.Helper()
	b.setDefaults(&o)
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := nodeimage.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

func (b *bench) setDefaults(o *nodeimage.Options) {
	if o.CreationDelay == 0 {
		o.CreationDelay = -1
	}
	o.Now, o.Explain = b.clock.now, b.passes.note
}

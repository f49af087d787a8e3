//go:build envtest

package imagepulljob_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/test/requests"
)

// Daemons report progress more often than a slow API server answers a write. A job asks each node once all the same.
func TestProgressIsNoConflict(t *testing.T) {
	const jobs, nodes, answer, tick = 6, 2, 150 * time.Millisecond, 30 * time.Millisecond
	b := startWith(t, imagepulljob.Options{}, func(c client.WithWatch) client.Client {
		return interceptor.NewClient(c, interceptor.Funcs{Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption,
		) error {
			slow, cancel := context.WithTimeout(ctx, answer)
			defer cancel()
			<-slow.Done()
			return c.Patch(ctx, o, p, options...)
		}})
	})
	b.have(nodes)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range nodes {
		go wait.UntilWithContext(ctx, b.progress(i+1), tick)
	}
	all := make([]*v1beta1.ImagePullJob, jobs)
	for i := range all {
		all[i] = b.create(fmt.Sprintf("job-%d", i), fmt.Sprintf("app-%d:1", i))
	}
	for _, job := range all {
		b.status(job, fmt.Sprintf("%d/0/%d/0", nodes, nodes), "job has completed")
	}
	stop()
	wrote := requests.About(b.requests.Take(), "nodeimages/")
	if len(wrote) != jobs*nodes {
		t.Errorf("%d requests about NodeImages for %d jobs on %d nodes: %v", len(wrote), jobs, nodes, wrote)
	}
}

// progress changes the status of a NodeImage, as a daemon does while it pulls.
func (b *bench) progress(n int) func(context.Context) {
	written := 0
	return func(ctx context.Context) {
		written++
		image := &v1beta1.NodeImage{}
		image.Name = b.node(n)
		data := fmt.Appendf(nil, `{"status":{"pulling":%d}}`, written%3)
		_ = b.client.Status().Patch(ctx, image, client.RawPatch(types.MergePatchType, data))
	}
}

package advancedcronjob_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/ledger"
)

// TestCacheLosesAWrite: the cache never shows the status that was written, as where etcd was restored. The reconciler
// looks again within a minute, although no tick is due.
func TestCacheLosesAWrite(t *testing.T) {
	m := newModel(t, v1beta1.JobTemplate)
	job := m.create("web", func(j *v1beta1.AdvancedCronJob) { j.Spec.Paused = ptr.To(true) })
	stale := m.Server.Snapshot()
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, name client.ObjectKey, into client.Object, o ...client.GetOption,
		) error {
			return stale.Get(ctx, name, into, o...)
		},
	}))
	look := func() time.Duration {
		t.Helper()
		result, err := m.Reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	look()
	m.Server.Requests()
	m.Clock = m.Clock.Add(10 * time.Second)
	if after := look(); after != ledger.Patience-10*time.Second {
		t.Errorf("the next look is after %s", after)
	}
	if writes := m.Server.Requests(); len(writes) > 0 {
		t.Errorf("requests %q", writes)
	}
}

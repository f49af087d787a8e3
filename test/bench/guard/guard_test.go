package guard_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// pods of each scenario.
const pods = 20

// told returns what creation, an update in place, one by other pods, and nothing cost.
func told(t testing.TB, name string, plant func(*world)) string {
	t.Helper()
	w, object, template := newWorld(t, kinds()[name], name, pods)
	plant(w)
	text := w.cost("creation of 20 pods")
	objects.Change(w.Model, object, func(client.Object) { template.Spec.Containers[0].Image = "web:2" })
	w.Server.Requests()
	text += w.cost("update in place")
	objects.Change(w.Model, object, func(client.Object) {
		template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	w.Server.Requests()
	return text + w.cost("update by other pods") + w.cost("nothing")
}

// What small rollouts write, and in how many passes, is in testdata.
func TestWrites(t *testing.T) {
	for name := range kinds() {
		t.Run(name, func(t *testing.T) {
			storytest.Compare(t, name, told(t, name, func(*world) {}))
		})
	}
}

// needless writes a label of a pod after each pass, as a reconciler that has lost track of what it wrote.
type needless struct {
	reconcile.Reconciler

	w *world
}

func (n needless) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	result, err := n.Reconciler.Reconcile(ctx, q)
	if all := n.w.Pods(); len(all) > 0 && all[0].Labels["seen"] == "" {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`))
		if err := n.w.Server.Patch(ctx, all[0], patch); err != nil {
			return result, err
		}
	}
	return result, err
}

// One needless write among all makes the figures others than those that are kept.
func TestNeedlessWriteIsSeen(t *testing.T) {
	for name := range kinds() {
		kept, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		with := told(t, name, func(w *world) { w.next = needless{w.next, w} })
		if diff := cmp.Diff(string(kept), with); !strings.Contains(diff, "PATCH pods 200") {
			t.Errorf("%s: the needless write is not seen (-kept +with it):\n%s", name, diff)
		}
	}
}

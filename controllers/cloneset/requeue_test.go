package cloneset

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// queue records when requests come back.
type queue struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	after []time.Duration
}

func (q *queue) AddAfter(_ ctrl.Request, after time.Duration) { q.after = append(q.after, after) }

// An error of one pod does not hold up another pod that waits for the end of its grace period.
func TestErrorBesideGrace(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)
	w := stock(t, 2, 2)
	w.pods[0].Annotations[kruise.InPlaceUpdateStateKey] = "{"
	revision := w.revisions[1].Name
	w.pods[1].Annotations = map[string]string{
		kruise.InPlaceUpdateStateKey: `{"revision":"` + revision + `","updateTimestamp":"2026-01-02T03:04:05Z"}`,
		kruise.InPlaceUpdateGraceKey: `{"revision":"` + revision + `","containerImages":{"web":"web:2"},"graceSeconds":8}`,
	}
	r, err := New(w, Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	if err := r.kit.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.set)})
	if err == nil || result != (ctrl.Result{}) {
		t.Fatalf("%v, %v; want the error of the unreadable pod", result, err)
	}
	if len(q.after) != 1 || q.after[0] != 3*time.Second {
		t.Errorf("comes back after %v, want the 3 seconds that are left of the grace period", q.after)
	}
}

package watches_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/test/rig/watchestest"
)

func TestTransitions(t *testing.T) {
	name := func(pod *corev1.Pod) string {
		if pod == nil {
			return "none"
		}
		return pod.Name
	}
	h := watches.Transitions(func(_ context.Context, q watches.Queue, before, after *corev1.Pod) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name(before) + " to " + name(after)}})
	})
	a, b := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	for _, c := range []struct {
		before, after *corev1.Pod
		want          string
	}{{nil, a, "none to a"}, {a, nil, "a to none"}, {a, b, "a to b"}} {
		if got := watchestest.Happen(t.Context(), h, c.before, c.after); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	q := &watchestest.Queue{}
	h.Create(t.Context(), event.CreateEvent{Object: a, IsInInitialList: true}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: a, ObjectNew: &corev1.Node{}}, q)
	h.Generic(t.Context(), event.GenericEvent{Object: a}, q)
	if got := q.Taken(); got != "" {
		t.Errorf("objects of the start and of another kind: %q, want no call", got)
	}
}

// The error of a handler is logged, unless the process ends.
func TestLog(t *testing.T) {
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	watches.Log(ctx, nil, "none")
	watches.Log(ctx, errors.New("no answer"), "Failed to find the jobs of a pod")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	watches.Log(ended, errors.New("no answer"), "at the end")
	if len(lines) != 1 || !strings.Contains(lines[0], `"Failed to find the jobs of a pod" "error"="no answer"`) {
		t.Errorf("logged %q", lines)
	}
}

package workload_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// A patch of the same cause is made again at most once a minute in the end, one of another cause, with other data or of
// another pod at once.
func TestDue(t *testing.T) {
	patch := func(pod, value, why string) workload.Cause {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, UID: types.UID(pod)}}
		return workload.Cause{Write: write.JSON(object, write.Main, write.Add("/metadata/labels/a", value)), Why: why}
	}
	var known workload.Repeats
	made, last := 0, time.Duration(0)
	start := time.Unix(1_800_000_000, 0)
	for at := time.Duration(0); at < 10*time.Minute; at += time.Second {
		now := start.Add(at)
		due, after, next := known.Due([]workload.Cause{patch("web-0", "b", "x")}, now)
		if len(due) == 0 && (after <= 0 || after > time.Minute) {
			t.Fatalf("at %s: nothing is due, and again after %s", at, after)
		}
		if len(due) > 0 {
			made, last = made+1, at
		}
		if again, _, _ := known.Due([]workload.Cause{patch("web-0", "b", "x")}, now); len(again) != len(due) {
			t.Fatalf("at %s: the same question has another answer", at)
		}
		known = next
	}
	if made < 12 || made > 20 || last < 9*time.Minute {
		t.Errorf("%d times in ten minutes, the last after %s", made, last)
	}
	others := []workload.Cause{patch("web-0", "b", "y"), patch("web-0", "c", "x"), patch("web-1", "b", "x")}
	if due, after, _ := known.Due(others, start.Add(10*time.Minute)); len(due) != len(others) || after != 0 {
		t.Errorf("%d others are due, and again after %s", len(due), after)
	}
}

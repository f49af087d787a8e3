//go:build envtest

package sidecarset_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

var (
	runs = flag.Int("runs", 10, "how many sets are led through faults")
	seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")
)

// explain sends the name of each set that a pass was made for.
func explain(to chan string) func(context.Context, string, []note.Note) {
	return func(_ context.Context, set string, _ []note.Note) {
		select {
		case to <- set:
		default: // the test waits for it no longer
		}
	}
}

// TestFaults: whatever write is lost, before it is applied or after, each container restarts once an update, and no
// revision is made twice.
func TestFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.Faults(*seed)
	b.reconcile(sidecarset.Options{}, func(c client.WithWatch) client.Client { return podbench.Writes(c, f.Do) })
	var sets []*v1beta1.SidecarSet
	for i := range *runs {
		sets = append(sets, b.create(fmt.Sprint("s", i), maxUnavailable("2")))
	}
	for i, set := range sets { // two sets a pod
		for k := range 3 {
			b.pod(fmt.Sprintf("pod-%d-%d", i, k), []*v1beta1.SidecarSet{set, sets[(i+1)%len(sets)]})
		}
	}
	for _, set := range sets {
		b.counted(set, 6, 6, 6, 6)
	}
	before := uids(b.pods())
	for round := 2; round <= 3; round++ {
		for i, set := range sets {
			b.change(set, image(fmt.Sprintf("s%d:%d", i, round)))
		}
		for _, set := range sets {
			b.counted(set, 6, 6, 6, 6)
		}
	}
	for _, pod := range b.pods() {
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name != "main" && (s.RestartCount != 2 || !strings.HasSuffix(s.Image, ":3")) {
				t.Errorf("%s/%s runs %s after %d restarts", pod.Name, s.Name, s.Image, s.RestartCount)
			}
		}
	}
	for _, set := range sets {
		if n := len(b.revisions(set)); n != 3 {
			t.Errorf("%s has %d revisions", set.Name, n)
		}
	}
	if diff := cmp.Diff(before, uids(b.pods())); diff != "" {
		t.Errorf("pods were replaced (-before +after):\n%s", diff)
	}
}

// TestRestart: the controller dies in the middle of an update, and another one, which remembers nothing, goes on.
func TestRestart(t *testing.T) {
	for _, writes := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprint(writes, " writes"), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			stop := b.reconcile(sidecarset.Options{}, same)
			set := b.create("mesh", maxUnavailable("2"))
			b.fleet(5, set)
			b.counted(set, 5, 5, 5, 5)
			stop()
			died, left := make(chan struct{}), atomic.Int64{}
			left.Store(int64(writes))
			die := sync.OnceFunc(func() { close(died) })
			stop = b.reconcile(sidecarset.Options{}, func(c client.WithWatch) client.Client {
				return podbench.Writes(c, func(_ string, write func() error) error {
					if left.Add(-1) < 0 {
						die()
						return podbench.ErrFault
					}
					return write()
				})
			})
			b.change(set, image("mesh:2"))
			<-died
			stop()
			b.reconcile(sidecarset.Options{}, same)
			b.counted(set, 5, 5, 5, 5)
			for _, pod := range b.pods() {
				if n := pod.Status.ContainerStatuses[0].RestartCount; n != 1 {
					t.Errorf("%s restarted %d times", pod.Name, n)
				}
			}
			b.marked(corev1.ConditionTrue, "AllSidecarsetUpgradable")
		})
	}
}

// TestLate: what another one has written since the pod was looked at is not undone, and costs no more than another
// look.
func TestLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.create("other").Name
	late := sync.OnceFunc(func() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "pod-0"}}
		b.patch(pod,
			`{"metadata":{"annotations":{"`+kruise.SidecarSetInPlaceUpdateStateKey+`":"{\"`+other+`\":{\"revision\":\"x\"}}"}}}`)
	})
	b.reconcile(sidecarset.Options{}, func(c client.WithWatch) client.Client {
		return podbench.Writes(c, func(name string, write func() error) error {
			if name == "patch/pod-0" {
				late()
			}
			return write()
		})
	})
	set := b.create("mesh")
	b.fleet(1, set)
	b.counted(set, 1, 1, 1, 1)
	b.Still()
	b.Asked()
	b.change(set, image("mesh:2"))
	b.counted(set, 1, 1, 1, 1)
	asked := requests.About(b.Asked(), "pods/pod-0 ")
	want := []string{"PATCH 422", "PATCH 200"}
	for i := range asked {
		fields := strings.Fields(asked[i])
		asked[i] = fields[0] + " " + fields[2]
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "pod-0"}}
	if b.get(pod); !strings.Contains(pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey], other+`":{"revision":"x"}`) {
		t.Errorf("what another one wrote is gone: %s", pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey])
	}
}

// TestLateMark tests that the condition of a pod keeps what another set wrote after the pod was observed.
func TestLateMark(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.create("other").Name
	late := sync.OnceFunc(func() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "pod-0"}}
		b.get(pod)
		before := pod.DeepCopy()
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type:    kruise.SidecarSetUpgradable,
			Status:  corev1.ConditionFalse,
			Reason:  kruise.SidecarSetUpgradableReasonImmutableField,
			Message: `{"` + other + `":false}`,
		})
		if err := b.Client.Status().Patch(b.Context(), pod, client.StrategicMergeFrom(before)); err != nil {
			b.Error(err)
		}
	})
	b.reconcile(sidecarset.Options{}, func(c client.WithWatch) client.Client {
		return podbench.Writes(c, func(name string, write func() error) error {
			if name == "status/pod-0" {
				late()
			}
			return write()
		})
	})
	set := b.create("mesh")
	b.fleet(1, set)
	b.counted(set, 1, 1, 1, 1)
	b.change(set, environment("1"))
	b.Until(func() error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "pod-0"}}
		b.get(pod)
		if c := lifecycle.ConditionOf(pod, kruise.SidecarSetUpgradable); c == nil || !strings.Contains(c.Message, set.Name) {
			return fmt.Errorf("%+v", c)
		} else if !strings.Contains(c.Message, `"`+other+`":false`) {
			t.Fatalf("what another set wrote is lost: %s", c.Message)
		}
		return nil
	})
}

// TestRecreated: a pod that has taken the name of another is not written for it.
func TestRecreated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var set *v1beta1.SidecarSet
	replaced := make(chan struct{})
	replace := sync.OnceFunc(func() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "pod-0"}}
		if err := b.Client.Delete(b.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			b.Error(err)
		}
		b.Until(func() error {
			if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is still there: %w", err)
			}
			return nil
		})
		pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "pod-0"}}
		pod.Spec.Containers = []corev1.Container{{Name: "mesh", Image: "app:1"}}
		b.add(pod)
		close(replaced)
	})
	b.reconcile(sidecarset.Options{}, func(c client.WithWatch) client.Client {
		return podbench.Writes(c, func(name string, write func() error) error {
			if name == "patch/pod-0" {
				replace()
			}
			return write()
		})
	})
	set = b.create("mesh")
	b.fleet(1, set)
	b.counted(set, 1, 1, 1, 1)
	b.change(set, image("mesh:2"))
	<-replaced
	b.counted(set, 0, 0, 0, 0)
	b.Still()
	b.runs("mesh=app:1")
}

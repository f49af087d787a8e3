//go:build envtest

package sidecarset_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
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
	const runs = 10
	f := b.Faults(0)
	b.reconcile(sidecarset.Options{}, func(c client.WithWatch) client.Client { return podbench.Writes(c, f.Do) })
	var sets []*v1beta1.SidecarSet
	for i := range runs {
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
	t.Parallel()
	b := newBench(t)
	stop := b.reconcile(sidecarset.Options{}, same)
	set := b.create("mesh", maxUnavailable("2"))
	b.fleet(5, set)
	b.counted(set, 5, 5, 5, 5)
	stop()
	died, left := make(chan struct{}), atomic.Int64{}
	left.Store(3)
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

package containermeta

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/test/bubbletest"
	"github.com/kruisekit/kruisekit/test/rig/nodetest"
)

// fixture is a daemon in a world whose cache is what a test says, and that looks when a test says so.
type fixture struct {
	*world

	d *nodetest.Daemon
	r *Reconciler
}

// sit has a test look at a world with its own eyes. Containers there do not stop.
func sit(t *testing.T, test func(fixture)) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		unstoppable := nodetest.Way{Stop: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		w := newWorld(1, map[string]nodetest.Way{"app": unstoppable, "log": unstoppable})
		w.Late = 0
		d := w.NewDaemon()
		r := w.newReconciler(d)
		ctx, cancel := context.WithCancel(t.Context())
		var node sync.WaitGroup
		node.Add(1)
		go func() {
			defer node.Done()
			w.Kubelet(ctx, t)
		}()
		bubbletest.Wait()
		test(fixture{w, d, r})
		cancel()
		if err := r.workers.Work(ctx); err != nil {
			t.Error(err)
		}
		node.Wait()
	})
}

// see has the cache know what is.
func (d fixture) see() { d.d.Catch() }

// look looks when the kubelet has had its time, too.
func (d fixture) look(t *testing.T) {
	t.Helper()
	d.lookNow(t)
	time.Sleep(catchUp) //nolint:forbidigo // the time of the bubble
	d.lookNow(t)
}

func (d fixture) lookNow(t *testing.T) {
	t.Helper()
	if _, err := d.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: web()}); err != nil {
		t.Fatal(err)
	}
	bubbletest.Wait()
}

// TestReadsItsWrites looks twice before the cache has what was written, and once after.
func TestReadsItsWrites(t *testing.T) {
	sit(t, func(d fixture) {
		d.see()
		d.look(t)
		d.look(t)
		if d.writes() != 1 {
			t.Errorf("%d writes before the cache knows", d.writes())
		}
		d.see()
		d.look(t)
		if d.writes() != 1 {
			t.Errorf("%d writes", d.writes())
		}
		// Where a client takes the annotation away, it is written again.
		d.change(func(pod *corev1.Pod) { delete(pod.Annotations, kruise.RuntimeContainerMetaKey) })
		d.see()
		d.look(t)
		if d.writes() != 2 {
			t.Errorf("%d writes", d.writes())
		}
	})
}

// TestRestored has etcd go back to a version before the annotation, which the cache has never shown. The annotation is
// written again a minute later, unprompted.
func TestRestored(t *testing.T) {
	sit(t, func(d fixture) {
		for range 50 { // versions go up
			d.change(func(pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, "x", pod.Labels["x"]+"x") })
		}
		d.see()
		older := d.pod()
		d.lookNow(t)
		if d.writes() != 1 {
			t.Fatalf("%d writes", d.writes())
		}
		older.ResourceVersion = ""
		d.Restore(d.scheme)
		if err := d.Put(older); err != nil {
			t.Fatal(err)
		}
		d.see()
		result, err := d.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: web()})
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > ledger.Patience || d.writes() != 1 {
			t.Fatalf("again after %s, %v, %d writes", result.RequeueAfter, err, d.writes())
		}
		time.Sleep(result.RequeueAfter) //nolint:forbidigo // the time of the bubble
		d.lookNow(t)
		if d.writes() != 2 || d.told() == "" {
			t.Errorf("%d writes", d.writes())
		}
	})
}

// TestCacheLagsForMinutes looks again and again at a cache that does not show the annotation.
func TestCacheLagsForMinutes(t *testing.T) {
	sit(t, func(d fixture) {
		d.see()
		for range 20 {
			d.lookNow(t)
			time.Sleep(ledger.Patience / 4) //nolint:forbidigo // the time of the bubble
		}
		if d.writes() != 1 {
			t.Errorf("%d writes", d.writes())
		}
	})
}

// TestNewestValues has a container start by itself with values that the cache does not know yet. It is not stopped for
// those that the cache knows.
func TestNewestValues(t *testing.T) {
	sit(t, func(d fixture) {
		d.change(ready(corev1.ConditionFalse))
		d.see()
		d.look(t)
		for _, s := range d.pod().Status.ContainerStatuses {
			d.change(func(pod *corev1.Pod) { pod.Annotations["conf"] = "1" })
			d.Node.End(s.ContainerID[len(nodetest.Engine+"://"):], 0)
			bubbletest.Wait()
		}
		d.look(t)
		if known := d.r.workers.Known(); len(known) > 0 {
			t.Errorf("to be stopped: %v", known)
		}
		d.see()
		d.look(t)
		if known := d.r.workers.Known(); len(known) > 0 {
			t.Errorf("to be stopped when the cache has caught up: %v", known)
		}
		d.change(func(pod *corev1.Pod) { pod.Annotations["conf"] = "2" })
		d.see()
		d.look(t)
		d.look(t)
		if known := d.r.workers.Known(); len(known) != 2 {
			t.Errorf("to be stopped after a change: %v", known)
		}
	})
}

// TestCalm stops nothing before the kubelet has had its time to see the newest values.
func TestCalm(t *testing.T) {
	sit(t, func(d fixture) {
		d.change(ready(corev1.ConditionFalse))
		for _, value := range []string{"1", "2"} {
			d.change(func(pod *corev1.Pod) { pod.Annotations["conf"] = value })
			d.see()
			d.lookNow(t)
			time.Sleep(catchUp - time.Millisecond) //nolint:forbidigo // the time of the bubble
			d.lookNow(t)
			if known := d.r.workers.Known(); len(known) > 0 {
				t.Fatalf("to be stopped for value %s: %v", value, known)
			}
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the time of the bubble
		d.lookNow(t)
		if known := d.r.workers.Known(); len(known) != 2 {
			t.Errorf("to be stopped: %v", known)
		}
	})
}

// TestGateOff reads no environment, and stops nothing.
func TestGateOff(t *testing.T) {
	sit(t, func(d fixture) {
		d.r.options.NoEnv = true
		d.change(ready(corev1.ConditionFalse))
		d.change(func(pod *corev1.Pod) { pod.Annotations["conf"] = "1" })
		d.see()
		d.look(t)
		if n := d.Node.CallsOf("Exec env"); n > 0 || d.writes() != 1 || len(d.r.workers.Known()) > 0 {
			t.Errorf("%d environments were read, %d writes, to be stopped: %v", n, d.writes(), d.r.workers.Known())
		}
	})
}

// TestGone gives up what is done to a pod, and forgets it.
func TestGone(t *testing.T) {
	sit(t, func(d fixture) {
		d.change(ready(corev1.ConditionFalse))
		d.change(func(pod *corev1.Pod) { pod.Annotations["conf"] = "1" })
		d.see()
		d.look(t)
		if known := d.r.workers.Known(); len(known) != 2 || len(d.r.memory) != 1 {
			t.Fatalf("to be stopped: %v", known)
		}
		d.change(func(pod *corev1.Pod) { pod.Finalizers = []string{nodetest.Stay} })
		if err := d.Delete(t.Context(), d.pod()); err != nil {
			t.Fatal(err)
		}
		d.see()
		d.look(t)
		if known := d.r.workers.Known(); len(known) > 0 || len(d.r.memory) > 0 {
			t.Errorf("still to be stopped: %v; remembered: %v", known, d.r.memory)
		}
	})
}

// TestUnreadable has no env in the image. What is known is reported; the image is asked ever more seldom, and at last
// no more.
func TestUnreadable(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		w := newWorld(1, map[string]nodetest.Way{"app": {NoEnv: true}})
		w.Play(t, func() {
			w.nudge()
			time.Sleep(30 * time.Second) //nolint:forbidigo // the time of the bubble
			if w.told() == "" {
				t.Errorf("nothing is reported\n%s", w.Text())
			}
			early := w.Node.CallsOf("Exec env")
			if early < 6 {
				t.Errorf("asked only %d times at first", early)
			}
			time.Sleep(2 * time.Hour) //nolint:forbidigo // the time of the bubble
			late, calls := w.Node.CallsOf("Exec env"), w.Node.Calls()
			if want := 2*mostReads + 1; late != want { // with and without -0; the other container tells at once
				t.Errorf("asked %d times, want %d", late, want)
			}
			time.Sleep(24 * time.Hour) //nolint:forbidigo // the time of the bubble
			if w.Node.Calls() != calls {
				t.Errorf("%d more calls of the runtime a day later", w.Node.Calls()-calls)
			}
		})
	})
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		output, end string
		want        map[string]string
	}{
		"nothing": {"", "\x00", map[string]string{}},
		"values of several lines": {
			"A=1\n2\x00B= x \x00C=\x00", "\x00", map[string]string{"A": "1\n2", "B": " x ", "C": ""},
		},
		"an equals sign in a value": {"A=b=c\n", "\n", map[string]string{"A": "b=c"}},
		"lines that are no entries": {"stray\nA=1\n2\nB=3\n", "\n", map[string]string{"A": "1\n2", "B": "3"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, parse([]byte(tt.output), tt.end)); diff != "" {
				t.Errorf("parsed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnstoppable tries again ever more seldom.
func TestUnstoppable(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		w := newWorld(1, map[string]nodetest.Way{"log": {Stop: func(context.Context) error {
			return errors.New("it does not stop")
		}}})
		w.Play(t, func() {
			w.nudge()
			w.await(t, "the first description")
			w.change(ready(corev1.ConditionFalse))
			w.change(func(pod *corev1.Pod) { pod.Annotations["conf"] = "1" })
			time.Sleep(time.Minute) //nolint:forbidigo // the time of the bubble
			early := w.Node.CallsOf("Stop")
			if early < 4 || early > 8 { // the other container, and 3, 9, 21 and 45 seconds after the first attempt
				t.Errorf("tried %d times in the first minute", early)
			}
			time.Sleep(3 * time.Hour) //nolint:forbidigo // the time of the bubble
			if late := w.Node.CallsOf("Stop") - early; late < 18 || late > 25 {
				t.Errorf("tried %d times in three hours, want about every ten minutes", late)
			}
		})
	})
}

//go:build envtest

package podreadiness_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/podreadiness"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

var seed = flag.Int64("seed", 0, "repeats the faults of an earlier run; 0 for new ones")

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

type bench struct{ *podbench.Bench }

// start runs a reconciler with a client of its own.
func start(t *testing.T, wrap func(client.WithWatch) client.Client) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{podbench.New(t, cluster.Options{})}
	b.reconcile(wrap)
	return b
}

func (b *bench) reconcile(wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := podreadiness.New(wrap(c), podreadiness.Options{})
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

func plain(c client.WithWatch) client.Client { return c }

func gated(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{
		{ConditionType: "example.com/other"}, {ConditionType: kruise.KruisePodReadyConditionType},
	}
}

// condition of a pod as it is now.
func (b *bench) condition(pod *corev1.Pod) *corev1.PodCondition {
	b.Helper()
	if err := b.Look(pod); err != nil {
		b.Fatal(err)
	}
	return lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
}

func (b *bench) isTrue(pod *corev1.Pod) {
	b.Helper()
	b.Until(func() error {
		if c := b.condition(pod); c == nil || c.Status != corev1.ConditionTrue {
			return fmt.Errorf("%s has %+v", pod.Name, c)
		}
		return nil
	})
}

// Each pod with the gate costs one write, whatever its kubelet writes meanwhile, and the others cost none.
func TestFirstWord(t *testing.T) {
	begin := time.Now().Add(-time.Second)
	b := start(t, plain)
	const many = 30
	var pods []*corev1.Pod
	for i := range many {
		pods = append(pods, b.Pod(fmt.Sprintf("web-%d", i), gated))
		b.Status(pods[i], func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodReady, Status: corev1.ConditionFalse,
			})
		})
	}
	without := b.Pod("without")
	for _, pod := range pods {
		b.isTrue(pod)
		got := *b.condition(pod)
		if got.LastTransitionTime.Time.Before(begin) || got.LastTransitionTime.After(time.Now()) {
			t.Errorf("since %s", got.LastTransitionTime)
		}
		got.LastTransitionTime = metav1.Time{}
		if diff := cmp.Diff(corev1.PodCondition{Type: kruise.KruisePodReadyConditionType, Status: corev1.ConditionTrue},
			got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if c := lifecycle.ConditionOf(pod, corev1.PodReady); c == nil || c.Status != corev1.ConditionFalse {
			t.Errorf("the condition of the kubelet is %+v", c)
		}
	}
	if c := b.condition(without); c != nil {
		t.Errorf("a pod without the gate has %+v", c)
	}
	b.Still()
	asked := b.Asked()
	if len(asked) != many {
		t.Errorf("%d requests for %d pods: %q", len(asked), many, asked)
	}
	if watched := b.Watched(); !slices.Equal(watched, []string{"pods"}) {
		t.Errorf("there are informers of %q", watched)
	}
	t.Logf("%d requests for %d pods", len(asked), many)
	for _, pod := range pods[:5] {
		b.Status(pod, func(pod *corev1.Pod) { pod.Status.Message = "something" })
		b.Gone(pods[5])
	}
	b.Still()
	if all := b.Asked(); len(all) > 0 {
		t.Errorf("asked for nothing: %q", all)
	}
}

// A client takes the pod out of traffic before the first word, and the cache does not show it yet.
func TestSomebodyIsFaster(t *testing.T) {
	t.Parallel()
	b := &bench{podbench.New(t, cluster.Options{})}
	var times atomic.Int32
	b.reconcile(func(c client.WithWatch) client.Client {
		return podbench.Writes(c, func(_ string, write func() error) error {
			if times.Add(1) == 1 {
				held := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "web"}}
				patch := `{"status":{"conditions":[{"type":"KruisePodReady","status":"False","lastTransitionTime":"2026-11-21T12:00:00Z","message":"[{\"userAgent\":\"x\",\"key\":\"y\"}]"}]}}`
				if err := b.Client.Status().Patch(t.Context(), held,
					client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
					return err
				}
			}
			return write()
		})
	})
	pod := b.Pod("web", gated)
	b.Until(func() error {
		if times.Load() == 0 {
			return errors.New("nobody has written")
		}
		return nil
	})
	b.Still()
	if c := b.condition(pod); c == nil || c.Status != corev1.ConditionFalse || c.Message == "" {
		t.Errorf("it is written over: %+v", c)
	}
	if diff := cmp.Diff([]string{"PATCH pods/web/status 409"}, b.Asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod that is being deleted gets no word any more, and a later one of the same name gets its own.
func TestComingAndGoing(t *testing.T) {
	t.Parallel()
	b := &bench{podbench.New(t, cluster.Options{})}
	going := b.Pod("going", gated, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/x"} })
	b.Gone(going)
	b.reconcile(plain)
	pod := b.Pod("web", gated)
	b.isTrue(pod)
	b.Gone(pod)
	b.isTrue(b.Pod("web", gated))
	b.Still()
	if c := b.condition(going); c != nil {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff([]string{"PATCH pods/web/status 200", "PATCH pods/web/status 200"}, b.Asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := b.Client.Patch(t.Context(), going,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
}

// What is lost on the way is said again.
func TestFaults(t *testing.T) {
	t.Parallel()
	b := &bench{podbench.New(t, cluster.Options{})}
	f := b.Faults(*seed)
	b.reconcile(func(c client.WithWatch) client.Client { return podbench.Writes(c, f.Do) })
	var pods []*corev1.Pod
	for i := range 60 {
		pods = append(pods, b.Pod(fmt.Sprintf("web-%d", i), gated))
	}
	for _, pod := range pods {
		b.isTrue(pod)
	}
}

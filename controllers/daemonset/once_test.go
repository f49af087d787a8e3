package daemonset_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// unreliable is a model whose creations get lost, lose their answers or are late, whose processes are killed, and whose
// next leader begins with a cache from before the last writes.
type unreliable struct {
	*model

	rand   *rand.Rand
	surge  bool
	faulty bool
	// catchUp ends the lag of the cache, if it lags.
	catchUp func()

	// mu guards what follows: a pass creates pods in parallel.
	mu sync.Mutex
	// late are creations that the client has given up, and that reach the API server later.
	late []func() error
}

// No creation gives a node a second pod, or a second new one with a surge, and without a surge none comes before the
// pod that it replaces is gone, whatever became of earlier creations and of the processes that made them.
func TestOnePodPerNode(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := &unreliable{
				model: newModel(t, 4, daemonset.Options{}), rand: rand.New(rand.NewPCG(seed, 3)), surge: seed%3 == 2, faulty: true,
			}
			change := unavailable("3")
			if w.surge {
				change = surge("3")
			}
			set := w.create(change)
			w.lead(w.Server)
			for range 60 {
				w.act(set)
				w.land()
				w.Reconcile()
				w.RunPods()
				w.Advance(1e9)
			}
			w.faulty, w.unready, w.Kubelet.Unready = false, nil, nil
			w.land()
			w.lead(w.Server)
			w.change(set, image("agent:9"))
			w.becomes(set, "n1:9 n2:9 n3:9 n4:9")
			w.idle()
		})
	}
}

// lead starts a process in the place of the one before.
func (w *unreliable) lead(c client.Client) {
	w.Helper()
	withWatch, is := c.(client.WithWatch)
	if !is {
		w.Fatalf("%T watches nothing", c)
	}
	w.restart(podbench.Writes(withWatch, func(what string, write func() error) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !strings.HasPrefix(what, "create/agent-") {
			return write()
		}
		create := func() error { return w.alone(write) }
		broken := apierrors.NewTimeoutError("the connection broke", 1)
		switch n := w.rand.IntN(8); {
		case !w.faulty || n > 2:
			return create()
		case n == 0:
			_ = create()
			return broken
		case n == 1:
			w.late = append(w.late, create)
		}
		return broken
	}))
}

// alone makes a creation, and looks at what its node has beside the pod.
func (w *unreliable) alone(create func() error) error {
	before := map[string]bool{}
	for _, pod := range w.pods() {
		before[string(pod.UID)] = true
	}
	if err := create(); err != nil {
		return err
	}
	pods := w.pods()
	for i := range pods {
		if fresh := &pods[i]; !before[string(fresh.UID)] {
			w.check(fresh, pods)
		}
	}
	return nil
}

func (w *unreliable) check(fresh *corev1.Pod, pods []corev1.Pod) {
	live := 0
	for i := range pods {
		pod := &pods[i]
		if pod.UID == fresh.UID || eligible.NodeOf(pod) != eligible.NodeOf(fresh) {
			continue
		}
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			live++
		}
		if !w.surge {
			w.Errorf("%s is created beside %s on %s: %s", fresh.Name, pod.Name, eligible.NodeOf(pod), w.picture())
		}
	}
	if live > 1 {
		w.Errorf("%s is created beside %d pods on %s: %s", fresh.Name, live, eligible.NodeOf(fresh), w.picture())
	}
}

// land has late creations reach the API server.
func (w *unreliable) land() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, create := range w.late {
		if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Error(errors.New("a late creation"), err)
		}
	}
	w.late = nil
}

// act is what the user, a node or a fault does.
func (w *unreliable) act(set *v1beta1.DaemonSet) {
	w.Helper()
	pods := w.pods()
	var chosen *corev1.Pod
	if len(pods) > 0 {
		chosen = &pods[w.rand.IntN(len(pods))]
	}
	switch n := w.rand.IntN(14); {
	case n < 2:
		w.change(set, image(fmt.Sprint("agent:", 1+w.rand.IntN(3))))
	case n < 4 && chosen != nil:
		w.delete(chosen)
	case n == 4 && chosen != nil:
		w.fail(chosen)
	case n == 5:
		node := fmt.Sprint("n", 1+w.rand.IntN(4))
		w.unready[node] = !w.unready[node]
	case n == 6: // a lease outlasts the requests of the process that has held it
		w.land()
		w.lead(w.Server)
	case n == 7:
		lagging, catchUp := w.FrozenPods()
		w.Reconcile()
		w.land()
		w.lead(lagging)
		w.catchUp = catchUp
	case n < 10 && w.catchUp != nil:
		w.catchUp()
		w.catchUp = nil
	}
}

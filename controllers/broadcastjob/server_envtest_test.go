//go:build envtest

package broadcastjob_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// Nodes have no namespace, so that the tests have a control plane of their own, and each its own label.
func TestServer(t *testing.T) {
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{
		Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_broadcastjobs.yaml"},
	})
	for name, test := range map[string]func(*bench){
		"life": testLife, "nodes": testNodes, "faults": testFaults, "malformed": testMalformed,
		"restart": testRestartRunning, "time to live": testTimeToLive, "rejected": testRejected,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{Bench: podbench.On(t, c, scheme), passes: map[string]int{}}
			b.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Node{}: {
				Label: labels.SelectorFromSet(labels.Set{benchKey: b.Namespace}),
			}}
			test(b)
		})
	}
}

// benchKey is the label of the nodes of one test.
const benchKey = "test.kruisekit.dev/bench"

// bench is what one test has.
type bench struct {
	*podbench.Bench

	mu     sync.Mutex
	passes map[string]int
}

// explain counts the passes of each job.
func (b *bench) explain(_ context.Context, job types.NamespacedName, _ []note.Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passes[job.Name]++
}

// passed returns the jobs that were reconciled since it was last called.
func (b *bench) passed() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for job := range b.passes {
		all = append(all, job)
	}
	clear(b.passes)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// start starts a reconciler, and returns a function that stops it.
func (b *bench) start(o broadcastjob.Options) (stop func()) {
	b.Helper()
	return b.startWith(o, func(c client.WithWatch) client.WithWatch { return c })
}

func (b *bench) startWith(o broadcastjob.Options, wrap func(client.WithWatch) client.WithWatch) (stop func()) {
	b.Helper()
	o.Explain = b.explain
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := broadcastjob.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

// name of a node, which has no namespace.
func (b *bench) name(node string) string { return b.Namespace + "-" + node }

// addNodes creates nodes. The API server taints new nodes until a controller has seen that they are ready.
func (b *bench) addNodes(names ...string) {
	b.Helper()
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.name(name), Labels: map[string]string{"early": "true"}}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("4"),
		}
		node.Status.Capacity = node.Status.Allocatable
		if err := b.Client.Create(b.Context(), node); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = b.Client.Delete(context.WithoutCancel(b.Context()), node) })
		b.patch(node, fmt.Sprintf(`{"spec":{"taints":null},"metadata":{"labels":{%q:%q}}}`, benchKey, b.Namespace))
	}
}

func (b *bench) patch(o client.Object, patch string) {
	b.Helper()
	if err := b.Client.Patch(b.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.name(name)}}
}

// create creates a job.
func (b *bench) create(changes ...func(*v1beta1.BroadcastJob)) *v1beta1.BroadcastJob {
	b.Helper()
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "check"}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "check:1"}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, change := range changes {
		change(job)
	}
	if err := b.Client.Create(b.Context(), job); err != nil {
		b.Fatal(err)
	}
	return job
}

// pods returns the pods of the test by the names of their nodes, those that terminate included.
func (b *bench) pods() map[string]*corev1.Pod {
	b.Helper()
	var list corev1.PodList
	if err := b.Client.List(b.Context(), &list, client.InNamespace(b.Namespace)); err != nil {
		b.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		node := strings.TrimPrefix(eligible.NodeOf(&list.Items[i]), b.Namespace+"-")
		if pods[node] != nil {
			b.Errorf("node %s has pods %s and %s", node, pods[node].Name, list.Items[i].Name)
		}
		pods[node] = &list.Items[i]
	}
	return pods
}

// runs waits until the nodes with a pod are these.
func (b *bench) runs(nodes string) {
	b.Helper()
	b.Until(func() error {
		var all []string
		for node := range b.pods() {
			all = append(all, node)
		}
		slices.Sort(all)
		if got := strings.Join(all, " "); got != nodes {
			return fmt.Errorf("pods on nodes %q, want %q", got, nodes)
		}
		return nil
	})
}

// end binds the pod of a node, and ends it.
func (b *bench) end(node string, phase corev1.PodPhase) {
	b.Helper()
	b.bind(node)
	b.Status(b.pods()[node], func(pod *corev1.Pod) { pod.Status.Phase = phase })
}

func (b *bench) bind(node string) {
	b.Helper()
	pod := b.pods()[node]
	if pod == nil {
		b.Fatalf("node %s has no pod", node)
	}
	if pod.Spec.NodeName != "" {
		return
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: b.name(node)}}
	if err := b.Client.SubResource("binding").Create(b.Context(), pod, binding); err != nil {
		b.Fatal(err)
	}
}

// is waits until the counters of a job are these.
func (b *bench) is(job *v1beta1.BroadcastJob, want string) {
	b.Helper()
	b.Until(func() error {
		if err := b.Look(job); err != nil {
			return err
		}
		if got := counters(job); got != want {
			return fmt.Errorf("%s, want %s", got, want)
		}
		return nil
	})
}

// quiet expects that a pass of a job sends no request while nothing is left to do, neither a write nor a read.
func (b *bench) quiet(job *v1beta1.BroadcastJob) {
	b.Helper()
	b.Still()
	b.Asked()
	b.passed()
	b.patch(job, `{"spec":{"parallelism":77}}`)
	b.Still()
	if passed := b.passed(); passed != job.Name {
		b.Errorf("passes of %q", passed)
	}
	asked := slices.DeleteFunc(b.Asked(), func(r string) bool { return strings.Contains(r, "events") })
	if len(asked) > 0 {
		b.Errorf("requests without a cause: %q", asked)
	}
}

// writes leaves out what is read, and events.
func writes(asked []string) []string {
	return slices.DeleteFunc(asked, func(r string) bool {
		return strings.HasPrefix(r, "GET ") || strings.Contains(r, "events")
	})
}

//go:build envtest

package broadcastjob_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/eligible"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// Nodes have no namespace, so that the tests have a control plane of their own, and each its own label.
func TestServer(t *testing.T) {
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_broadcastjobs.yaml"}})
	for name, test := range map[string]func(*bench){
		"life": testLife, "fail fast": testFailFast, "nodes": testNodes, "bound": testBound, "faults": testFaults, "malformed": testMalformed,
		"restart/running": testRestartRunning, "restart/paused": testRestartPaused, "restart/ended": testRestartEnded,
		"restart/unreported": testRestartUnreported, "restart/failing": testRestartFailing, "restart/deadline": testRestartDeadline,
		"time to live": testTimeToLive, "rejected": testRejected,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{Bench: podbench.On(t, c, scheme), passes: map[string]int{}}
			b.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Node{}: {Label: labels.SelectorFromSet(labels.Set{benchKey: b.Namespace})}}
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
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("4")}
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

// testLife runs a job to its end, and counts its writes.
func testLife(b *bench) {
	b.addNodes("a", "b", "c")
	b.patch(b.node("c"), `{"spec":{"unschedulable":true}}`)
	b.start(broadcastjob.Options{})
	b.Still()
	b.Asked()
	job := b.create(parallelism("1"))
	b.is(job, "running: desired 2, active 1, succeeded 0, failed 0")
	b.runs("a")
	b.end("a", corev1.PodSucceeded)
	b.runs("a b")
	b.is(job, "running: desired 2, active 1, succeeded 1, failed 0")
	b.end("b", corev1.PodSucceeded)
	b.is(job, "completed: desired 2, active 0, succeeded 2, failed 0")
	b.Still()
	if asked := writes(b.Asked()); len(asked) != 2+3 {
		b.Errorf("%d writes for 2 pods: %q", len(asked), asked)
	}
	c := job.Status.Conditions
	if len(c) != 1 || c[0].Type != v1beta1.JobComplete || c[0].Status != corev1.ConditionTrue || job.Status.CompletionTime == nil || job.Status.StartTime == nil {
		b.Errorf("status %+v", job.Status)
	}
	b.Until(func() error {
		if got := b.Events(job, "JobComplete"); len(got) != 1 || !strings.HasSuffix(got[0], "is completed, 2 pods succeeded, 0 pods failed (1)") {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
	b.quiet(job)
}

// testFailFast ends a job with its first failed pod: the others are deleted, and no event of a node changes that.
func testFailFast(b *bench) {
	b.addNodes("a", "b")
	b.start(broadcastjob.Options{})
	job := b.create()
	b.runs("a b")
	b.bind("b")
	b.end("a", corev1.PodFailed)
	b.is(job, "failed: desired 2, active 0, succeeded 0, failed 2")
	b.Until(func() error {
		if pod := b.pods()["b"]; pod != nil && pod.DeletionTimestamp == nil {
			return errors.New("a pod still runs")
		}
		return nil
	})
	b.addNodes("c")
	b.Still()
	if pod := b.pods()["c"]; pod != nil {
		b.Error("a job that has failed creates a pod")
	}
	b.quiet(job)
}

// testNodes: an event of a node reconciles the jobs that it concerns.
func testNodes(b *bench) {
	b.addNodes("a")
	b.start(broadcastjob.Options{})
	everywhere := func(j *v1beta1.BroadcastJob) { j.Name = "everywhere"; j.Spec.CompletionPolicy.Type = v1beta1.Never }
	onDisks := func(j *v1beta1.BroadcastJob) {
		j.Name, j.Spec.Template.Spec.NodeSelector = "disks", map[string]string{"disk": "ssd"}
	}
	first, second := b.create(everywhere), b.create(onDisks)
	b.is(first, "running: desired 1, active 1, succeeded 0, failed 0")
	b.is(second, "running: desired 0, active 0, succeeded 0, failed 0")
	step := func(what string, change func(), want string) {
		b.Helper()
		b.Still()
		b.passed()
		change()
		b.Still()
		if got := b.passed(); got != want {
			b.Errorf("%s reconciles %q, want %q", what, got, want)
		}
	}
	step("a heartbeat", func() {
		if err := b.Client.Status().Patch(b.Context(), b.node("a"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))); err != nil {
			b.Fatal(err)
		}
	}, "")
	step("a label that no job reads", func() { b.patch(b.node("a"), `{"metadata":{"labels":{"team":"x"}}}`) }, "")
	// A pod of another job would be on the node as well: pods have one per node and job.
	b.end("a", corev1.PodSucceeded)
	b.is(first, "running: desired 1, active 0, succeeded 1, failed 0")
	step("a taint", func() {
		b.patch(b.node("a"), `{"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]}}`)
	}, "everywhere")
	step("a node that goes", func() {
		if err := b.Client.Delete(b.Context(), b.node("a")); err != nil {
			b.Fatal(err)
		}
	}, "everywhere")
	b.addNodes("d")
	b.is(first, "running: desired 1, active 1, succeeded 1, failed 0")
}

// testBound: without the scheduler pods name their node.
func testBound(b *bench) {
	b.addNodes("a")
	b.start(broadcastjob.Options{Bind: true})
	job := b.create()
	b.runs("a")
	if pod := b.pods()["a"]; pod.Spec.NodeName != b.name("a") || pod.Spec.Affinity != nil {
		b.Errorf("spec %+v", pod.Spec)
	}
	b.end("a", corev1.PodSucceeded)
	b.is(job, "completed: desired 1, active 0, succeeded 1, failed 0")
}

// testFaults: requests that fail, or whose answers are lost, run no node twice.
func testFaults(b *bench) {
	b.addNodes("a", "b", "c")
	faults := b.Faults(0)
	b.startWith(broadcastjob.Options{}, func(c client.WithWatch) client.WithWatch { return podbench.Writes(c, faults.Do) })
	job := b.create(parallelism("2"))
	for _, node := range []string{"a", "b", "c"} {
		b.Until(func() error {
			if b.pods()[node] == nil {
				return fmt.Errorf("no pod on %s", node)
			}
			return nil
		})
		b.end(node, corev1.PodSucceeded)
	}
	b.is(job, "completed: desired 3, active 0, succeeded 3, failed 0")
}

// testMalformed: an object that no Go type holds is left alone, with an event, and stops no other job.
func testMalformed(b *bench) {
	b.addNodes("a")
	b.start(broadcastjob.Options{})
	raw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob", "metadata": map[string]any{"namespace": b.Namespace, "name": "malformed"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": int64(7)}}},
	}}
	if err := b.Client.Create(b.Context(), raw); err != nil {
		b.Fatal(err)
	}
	job := b.create()
	b.is(job, "running: desired 1, active 1, succeeded 0, failed 0")
	b.Until(func() error {
		if got := b.Events(raw, "InvalidSpec"); len(got) != 1 {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
	b.quiet(job)
}

// testRejected: pods that the API server rejects are an event, and the job goes on once the template is mended.
func testRejected(b *bench) {
	b.addNodes("a", "b")
	b.start(broadcastjob.Options{})
	job := b.create(func(j *v1beta1.BroadcastJob) { j.Spec.Template.Spec.Containers[0].Name = "No Name" })
	b.is(job, "running: desired 2, active 0, succeeded 0, failed 0")
	b.Until(func() error {
		if got := b.Events(job, "FailedCreate"); len(got) == 0 || !strings.Contains(got[0], "spec.containers[0].name") {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
	b.patch(job, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"check:1"}]}}}}`)
	b.is(job, "running: desired 2, active 2, succeeded 0, failed 0")
}

// testRestartRunning restarts the manager while pods run: nothing is written, and the job goes on.
func testRestartRunning(b *bench) {
	b.addNodes("a", "b")
	stop := b.start(broadcastjob.Options{})
	job := b.create(parallelism("1"))
	b.is(job, "running: desired 2, active 1, succeeded 0, failed 0")
	b.Still()
	stop()
	b.Asked()
	stop = b.start(broadcastjob.Options{})
	b.Still()
	if asked := writes(b.Asked()); len(asked) > 0 {
		b.Errorf("a restart costs %q", asked)
	}
	stop()
	b.end("a", corev1.PodSucceeded) // while no manager runs
	b.start(broadcastjob.Options{})
	b.runs("a b")
	b.end("b", corev1.PodSucceeded)
	b.is(job, "completed: desired 2, active 0, succeeded 2, failed 0")
}

// testRestartPaused restarts the manager while a failed pod pauses the job.
func testRestartPaused(b *bench) {
	b.addNodes("a", "b")
	stop := b.start(broadcastjob.Options{})
	job := b.create(parallelism("1"), policy(v1beta1.FailurePolicyTypePause))
	b.runs("a")
	b.end("a", corev1.PodFailed)
	b.is(job, "paused: desired 2, active 0, succeeded 0, failed 1")
	b.Still()
	stop()
	b.Asked()
	b.start(broadcastjob.Options{})
	b.Still()
	if asked := writes(b.Asked()); len(asked) > 0 {
		b.Errorf("a restart costs %q", asked)
	}
	b.Gone(b.pods()["a"])
	b.is(job, "running: desired 2, active 1, succeeded 0, failed 0")
	if got := b.Events(job, "Paused"); len(got) != 1 || !strings.HasSuffix(got[0], "(1)") {
		b.Errorf("events %q", got)
	}
}

// testRestartEnded restarts the manager after the end of a job.
func testRestartEnded(b *bench) {
	b.addNodes("a")
	stop := b.start(broadcastjob.Options{})
	job := b.create()
	b.runs("a")
	b.end("a", corev1.PodSucceeded)
	b.is(job, "completed: desired 1, active 0, succeeded 1, failed 0")
	b.Still()
	stop()
	b.Gone(b.pods()["a"]) // a job that has ended does not run again
	b.Asked()
	b.start(broadcastjob.Options{})
	b.Still()
	if asked := writes(b.Asked()); len(asked) > 0 {
		b.Errorf("a restart costs %q", asked)
	}
}

// testRestartUnreported: the manager has created pods, and is restarted before it has written the status.
func testRestartUnreported(b *bench) {
	b.addNodes("a", "b")
	stop := b.startWith(broadcastjob.Options{}, func(c client.WithWatch) client.WithWatch {
		return podbench.Writes(c, func(what string, write func() error) error {
			if strings.HasPrefix(what, "status/") {
				return apierrors.NewInternalError(errors.New("no status"))
			}
			return write()
		})
	})
	job := b.create()
	b.runs("a b")
	stop()
	pods := b.pods()
	b.start(broadcastjob.Options{})
	b.is(job, "running: desired 2, active 2, succeeded 0, failed 0")
	for node, pod := range b.pods() {
		if pod.UID != pods[node].UID {
			b.Errorf("the pod of %s is another one", node)
		}
	}
	if start := job.Status.StartTime; start == nil || start.After(pods["a"].CreationTimestamp.Time) {
		b.Errorf("the job starts at %s, its pod at %s", start, pods["a"].CreationTimestamp)
	}
}

// testRestartFailing: the end is written, and the manager is restarted before it has deleted the pods.
func testRestartFailing(b *bench) {
	b.addNodes("a", "b")
	stop := b.startWith(broadcastjob.Options{}, func(c client.WithWatch) client.WithWatch {
		return podbench.Writes(c, func(what string, write func() error) error {
			if strings.HasPrefix(what, "delete/") {
				return apierrors.NewInternalError(errors.New("no deletions"))
			}
			return write()
		})
	})
	job := b.create()
	b.runs("a b")
	b.bind("b")
	b.end("a", corev1.PodFailed)
	b.is(job, "failed: desired 2, active 0, succeeded 0, failed 2")
	stop()
	b.start(broadcastjob.Options{})
	b.Until(func() error {
		if pod := b.pods()["b"]; pod != nil && pod.DeletionTimestamp == nil {
			return errors.New("a pod still runs")
		}
		return nil
	})
	b.is(job, "failed: desired 2, active 0, succeeded 0, failed 2")
}

// testRestartDeadline: the deadline passes after a restart, in a cluster where nothing else happens.
func testRestartDeadline(b *bench) {
	b.addNodes("a")
	stop := b.start(broadcastjob.Options{})
	job := b.create(deadline(3))
	b.is(job, "running: desired 1, active 1, succeeded 0, failed 0")
	stop()
	b.start(broadcastjob.Options{})
	b.is(job, "failed: desired 1, active 0, succeeded 0, failed 1")
	if took := job.Status.CompletionTime.Sub(job.Status.StartTime.Time); took < 3*time.Second || took > 15*time.Second {
		b.Errorf("the job failed after %s", took)
	}
}

// testTimeToLive: a job is deleted after its end, though the manager restarts.
func testTimeToLive(b *bench) {
	b.addNodes("a")
	stop := b.start(broadcastjob.Options{})
	job := b.create(ttl(2))
	b.runs("a")
	b.end("a", corev1.PodSucceeded)
	b.is(job, "completed: desired 1, active 0, succeeded 1, failed 0")
	stop()
	b.start(broadcastjob.Options{})
	b.Until(func() error {
		if err := b.Look(job); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the job is still there: %w", errors.Join(err, errors.New("no deletion")))
		}
		return nil
	})
}

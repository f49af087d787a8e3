//go:build envtest

package ephemeraljob_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// TestServer: what the API server makes of the writes, and what wakes the reconciler.
func TestServer(t *testing.T) {
	scheme := podbench.Scheme(t, v1alpha1.AddToScheme)
	c := cluster.Start(t, cluster.Options{
		Scheme: scheme, CRDDirs: []string{"../../config/crd/bases/apps.kruise.io_ephemeraljobs.yaml"},
	})
	for name, test := range map[string]func(*bench){
		"life": testLife, "refused": testServerRefusal, "selected": testSelected, "restart": testRestart,
		"malformed": testMalformed, "finalizer": testFinalizer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&bench{Bench: podbench.On(t, c, scheme), passes: map[string]int{}})
		})
	}
}

// bench is what one test has.
type bench struct {
	*podbench.Bench

	mu     sync.Mutex
	passes map[string]int
}

// passed returns the jobs that were reconciled since it was last called.
func (b *bench) passed() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for name := range b.passes {
		all = append(all, name)
	}
	clear(b.passes)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// start starts a reconciler, and returns a function that stops it.
func (b *bench) start() (stop func()) {
	b.Helper()
	o := ephemeraljob.Options{Explain: func(_ context.Context, name types.NamespacedName, _ []note.Note) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.passes[name.Name]++
	}}
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := ephemeraljob.New(c, o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

// web makes pods with app=web.
func (b *bench) web(names ...string) {
	b.Helper()
	for _, name := range names {
		pod := b.Pod(name, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} })
		b.Status(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	}
}

func (b *bench) pod(name string) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	if err := b.Look(pod); err != nil {
		b.Fatal(err)
	}
	return pod
}

// create creates a job with the name of the test's, and what changes add.
func (b *bench) create(changes ...change) *job {
	b.Helper()
	j := &job{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "debug"}}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	j.Spec.Template.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell", Image: "busybox:1"}},
	}
	for _, c := range changes {
		c(j)
	}
	if err := b.Client.Create(b.Context(), j); err != nil {
		b.Fatal(err)
	}
	return j
}

func (b *bench) patch(o client.Object, patch string) {
	b.Helper()
	if err := b.Client.Patch(b.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		b.Fatal(err)
	}
}

// reports waits until the status of a job is this one.
func (b *bench) reports(j *job, want string) {
	b.Helper()
	b.Until(func() error {
		if err := b.Look(j); err != nil {
			return err
		}
		if got := counters(j); got != want {
			return fmt.Errorf("%s, want %s", got, want)
		}
		return nil
	})
}

// becomes reports the state of the container of a pod, as a kubelet does.
func (b *bench) becomes(name string, state corev1.ContainerState) {
	b.Helper()
	b.Status(b.pod(name), func(p *corev1.Pod) {
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "shell", State: state}}
	})
}

func runs() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

func exited(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()}}
}

// testLife: one pod after the other, to the end. The API server fills in the policies of the containers, and keeps
// those that are there.
func testLife(b *bench) {
	b.web("a", "b")
	have := b.pod("a")
	have.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debugger", Image: "busybox:1",
	}}}
	if err := b.Client.SubResource("ephemeralcontainers").Update(b.Context(), have); err != nil {
		b.Fatal(err)
	}
	b.start()
	j := b.create()
	b.reports(j, "Unknown: match 2, waiting 1, running 0, succeeded 0, failed 0")
	a := b.pod("a")
	if n := len(a.Spec.EphemeralContainers); n != 2 {
		b.Fatalf("pod a has %d ephemeral containers", n)
	}
	c := a.Spec.EphemeralContainers[1]
	if c.ImagePullPolicy != corev1.PullIfNotPresent || c.TerminationMessagePolicy != corev1.TerminationMessageReadFile ||
		c.Env[0].Value != string(j.UID) {
		b.Errorf("container %+v", c)
	}
	b.becomes("a", runs())
	b.reports(j, "Running: match 2, waiting 0, running 1, succeeded 0, failed 0")
	b.becomes("a", exited(0))
	b.reports(j, "Unknown: match 2, waiting 1, running 0, succeeded 1, failed 0")
	b.becomes("b", exited(3))
	b.reports(j, "Failed: match 2, waiting 0, running 0, succeeded 1, failed 1; "+strings.Repeat(" JobFailed", 2)[1:])
	b.Still()
	b.Asked()
	b.becomes("b", exited(0))
	b.web("c")
	b.Still()
	if asked := b.Asked(); len(asked) > 0 {
		b.Errorf("a job that has ended costs %v", asked)
	}
}

// testServerRefusal: the API server refuses a mount of a volume that a pod lacks, and the other pod gets the
// containers.
func testServerRefusal(b *bench) {
	b.web("a")
	pod := b.Pod("b", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web"}
		p.Spec.Volumes = []corev1.Volume{{
			Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		}}
	})
	b.Status(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	b.start()
	j := b.create(func(j *job) {
		j.Spec.Template.EphemeralContainers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	b.reports(j, "Unknown: match 2, waiting 1, running 0, succeeded 0, failed 0; JobFailed CreateFailed")
	i := slices.IndexFunc(j.Status.Conditions, func(c v1alpha1.EphemeralJobCondition) bool {
		return c.Type == v1alpha1.EJobFailed
	})
	if text := j.Status.Conditions[i].Message; !strings.Contains(text, "a: ") ||
		!strings.Contains(text, "volumeMounts[0].name") {
		b.Errorf("message %q", text)
	}
	if len(b.pod("b").Spec.EphemeralContainers) != 1 {
		b.Error("pod b has no container")
	}
}

// testSelected: labels bring a pod in and out. Changes that do not matter reconcile nothing.
func testSelected(b *bench) {
	b.web("a")
	b.start()
	j := b.create()
	other := b.create(named("other"), func(j *job) { j.Spec.Selector.MatchLabels["app"] = "db" })
	b.reports(j, "Waiting: match 1, waiting 1, running 0, succeeded 0, failed 0")
	b.reports(other, "Waiting: match 0, waiting 0, running 0, succeeded 0, failed 0; MatchedEmpty MatchEmpty")
	b.Still()
	b.passed()
	b.Status(b.pod("a"), func(p *corev1.Pod) {
		p.Status.PodIP = "10.0.0.1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	b.Still()
	if passed := b.passed(); passed != "" {
		b.Errorf("a ready pod reconciles %s", passed)
	}
	b.becomes("a", runs())
	b.reports(j, "Running: match 1, waiting 0, running 1, succeeded 0, failed 0")
	b.Still()
	if passed := b.passed(); passed != "debug" {
		b.Errorf("a container reconciles %s", passed)
	}
	b.patch(b.pod("a"), `{"metadata":{"labels":{"app":"db"}}}`)
	b.reports(j, "Waiting: match 0, waiting 0, running 0, succeeded 0, failed 0; MatchedEmpty MatchEmpty")
	b.Still()
	if passed := b.passed(); passed != "debug other" {
		b.Errorf("a label reconciles %s", passed)
	}
}

// testRestart: another process goes on, and a pass without a change costs nothing.
func testRestart(b *bench) {
	b.web("a", "b")
	stop := b.start()
	j := b.create(parallelism(1))
	b.reports(j, "Unknown: match 2, waiting 1, running 0, succeeded 0, failed 0")
	b.Still()
	stop()
	b.Asked()
	stop = b.start()
	b.Still()
	if asked := b.Asked(); len(asked) > 0 {
		b.Errorf("a restart costs %v", asked)
	}
	stop()
	b.becomes("a", exited(0))
	b.start()
	b.reports(j, "Unknown: match 2, waiting 1, running 0, succeeded 1, failed 0")
	if len(b.pod("a").Spec.EphemeralContainers) != 1 || len(b.pod("b").Spec.EphemeralContainers) != 1 {
		b.Error("a pod has other containers than one")
	}
}

// testMalformed: a template that no Go type holds is an error of this job alone.
func testMalformed(b *bench) {
	b.web("a")
	bad := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1",
		"kind":       "EphemeralJob",
		"metadata":   map[string]any{"namespace": b.Namespace, "name": "bad"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"ephemeralContainers": "many"},
		},
	}}
	if err := b.Client.Create(b.Context(), bad); err != nil {
		b.Fatal(err)
	}
	b.start()
	j := b.create()
	b.reports(j, "Waiting: match 1, waiting 1, running 0, succeeded 0, failed 0")
	b.Until(func() error {
		if err := b.Look(bad); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(bad.Object, "status", "phase"); phase != "Error" {
			return fmt.Errorf("phase %q", phase)
		}
		return nil
	})
	b.Gone(bad)
}

// testFinalizer: the finalizer of the reference goes, and a job is deleted while no manager runs.
func testFinalizer(b *bench) {
	stop := b.start()
	j := b.create(finalizer)
	b.Until(func() error {
		if err := b.Look(j); err != nil {
			return err
		}
		if len(j.Finalizers) > 0 {
			return fmt.Errorf("finalizers %v", j.Finalizers)
		}
		return nil
	})
	b.Still()
	stop()
	b.Gone(j)
	if err := client.IgnoreNotFound(b.Look(j)); err != nil || j.DeletionTimestamp != nil {
		b.Errorf("the job is there: %v", err)
	}
	left := b.create(named("left"), finalizer)
	b.Gone(left)
	b.start()
	b.Until(func() error {
		if err := b.Look(left); err == nil {
			return fmt.Errorf("finalizers %v", left.Finalizers)
		}
		return nil
	})
}

package ephemeraljob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/rig/storedtest"
	"github.com/kruisekit/kruisekit/test/rig/watchestest"
)

// withJobs returns a reconciler that finds these jobs: one for each container "shell" and "dump" of pods with app=web,
// one for pods with app=db, one that has ended, one whose selector is invalid, and one in another namespace.
func withJobs(t *testing.T) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, func() time.Time { return time.Unix(1_800_000_000, 0) })
	r, err := New(server, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unfinished().Index(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*v1alpha1.EphemeralJob){
		"shell":     func(*v1alpha1.EphemeralJob) {},
		"dump":      func(j *v1alpha1.EphemeralJob) { j.Spec.Template.EphemeralContainers[0].Name = "dump" },
		"db":        func(j *v1alpha1.EphemeralJob) { j.Spec.Selector.MatchLabels["app"] = "db" },
		"ended":     func(j *v1alpha1.EphemeralJob) { j.Status.CompletionTime = &metav1.Time{Time: time.Unix(1, 0)} },
		"invalid":   func(j *v1alpha1.EphemeralJob) { j.Spec.Selector = nil },
		"elsewhere": func(j *v1alpha1.EphemeralJob) { j.Namespace = "yard" },
	} {
		j := &v1alpha1.EphemeralJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
		}}
		j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		j.Spec.Template.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell"}},
		}
		change(j)
		if err := server.Put(j); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func podWith(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "a", UID: "uid-a", Labels: map[string]string{"app": "web"},
	}}
	for _, c := range changes {
		c(pod)
	}
	return pod
}

func with(name, owner string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: name, Env: []corev1.EnvVar{{Name: kruise.EphemeralContainerEnvKey, Value: owner}},
			}})
	}
}

func runs(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.EphemeralContainerStatuses = append(p.Status.EphemeralContainerStatuses, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
}

// A change of a pod reconciles the jobs to which it matters, and no other one.
func TestPodEvents(t *testing.T) {
	r := withJobs(t)
	ctx, handler := t.Context(), r.podEvents()
	gone := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	other := func(p *corev1.Pod) { p.UID = "uid-b" }
	relabelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }
	noise := func(p *corev1.Pod) {
		p.Labels["x"], p.Status.PodIP = "y", "10.0.0.1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 7}}
	}
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		want          string
	}{
		"created":               {nil, podWith(), "dump shell"},
		"created in deletion":   {nil, podWith(gone), ""},
		"created, unselected":   {nil, podWith(func(p *corev1.Pod) { p.Labels = nil }), ""},
		"deleted":               {podWith(), nil, "dump shell"},
		"deleted after its end": {podWith(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), nil, ""},
		"noise":                 {podWith(), podWith(noise), ""},
		"started": {
			podWith(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
			podWith(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), "",
		},
		"ended": {
			podWith(), podWith(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "dump shell",
		},
		"goes":                          {podWith(), podWith(gone), "dump shell"},
		"relabelled":                    {podWith(), podWith(relabelled), "db dump shell"},
		"an own container":              {podWith(), podWith(with("shell", "uid-shell")), "shell"},
		"a container of another job":    {podWith(), podWith(with("shell", "uid-other")), "shell"},
		"a container with another name": {podWith(), podWith(with("debugger", "uid-shell"), runs("debugger")), ""},
		"an own container runs": {
			podWith(with("shell", "uid-shell")), podWith(with("shell", "uid-shell"), runs("shell")), "shell",
		},
		"a container of another job runs": {
			podWith(with("shell", "uid-other")), podWith(with("shell", "uid-other"), runs("shell")), "",
		},
		"another pod of the name": {podWith(), podWith(other), "dump shell"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := watchestest.Happen(ctx, handler, c.before, c.after); got != c.want {
				t.Errorf("reconciles %q, want %q", got, c.want)
			}
		})
	}
	q := &watchestest.Queue{}
	handler.Create(ctx, event.CreateEvent{Object: podWith(), IsInInitialList: true}, q)
	handler.Update(ctx, event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: &corev1.Node{}}, q)
	if got := q.Taken(); got != "" {
		t.Errorf("the start of the process reconciles %q through pods", got)
	}
}

// The reconciler's own counters do not bring a job back. What a user changes does, and so do the start and the end of
// the job.
func TestJobEvents(t *testing.T) {
	before := &v1alpha1.EphemeralJob{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "uid", ResourceVersion: "1", Generation: 1,
	}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.EphemeralJob)
		want   bool
	}{
		"a resync": {func(j *v1alpha1.EphemeralJob) { j.ResourceVersion = "1" }, true},
		"counters": {func(j *v1alpha1.EphemeralJob) { j.Status.Running, j.Status.Phase = 3, "Running" }, false},
		"a condition": {
			func(j *v1alpha1.EphemeralJob) { j.Status.Conditions = make([]v1alpha1.EphemeralJobCondition, 1) }, false,
		},
		"a label":          {func(j *v1alpha1.EphemeralJob) { j.Labels = map[string]string{"a": "b"} }, false},
		"a new generation": {func(j *v1alpha1.EphemeralJob) { j.Generation = 2 }, true},
		"the end": {
			func(j *v1alpha1.EphemeralJob) { j.Status.CompletionTime = &metav1.Time{Time: time.Unix(1, 0)} }, true,
		},
		"the deletion": {
			func(j *v1alpha1.EphemeralJob) { j.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true,
		},
		"a finalizer": {
			func(j *v1alpha1.EphemeralJob) { j.Finalizers = []string{v1alpha1.EphemeralJobFinalizerKey} }, true,
		},
		"another job": {func(j *v1alpha1.EphemeralJob) { j.UID = "uid-b" }, true},
	} {
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		c.change(after)
		if got := withoutCounters().Update(event.UpdateEvent{
			ObjectOld: storedtest.Raw(t, gvk(), before), ObjectNew: storedtest.Raw(t, gvk(), after),
		}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !withoutCounters().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before}) {
		t.Error("what is not known passes")
	}
}

package ephemeraljob_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob"
	"github.com/kruisekit/kruisekit/test/objects"
)

type (
	job    = v1alpha1.EphemeralJob
	change = func(*job)
)

// model runs the reconciler of EphemeralJobs, and plays the kubelets.
type model struct {
	testing.TB
	*objects.Model

	options ephemeraljob.Options
	// ends are how the containers of a pod end: "failed", "runs" without end, or "pulls" without end. Others succeed.
	ends map[string]string

	mu sync.Mutex
	// faults are the answers to the writes of pods.
	faults map[string]error
}

func newModel(t testing.TB, pods string) *model {
	t.Helper()
	m := &model{
		TB:     t,
		Model:  objects.NewModel(t, &v1alpha1.EphemeralJobList{}, v1alpha1.AddToScheme),
		ends:   map[string]string{},
		faults: map[string]error{},
	}
	for name := range strings.FieldsSeq(pods) {
		m.addPod(name)
		m.Advance(time.Second)
	}
	m.restart(m.Server)
	return m
}

// restart starts another reconciler in the place of the one before, which reads from a cache.
func (m *model) restart(cache client.Reader) {
	m.Helper()
	o := m.options
	o.Now, o.Recorder, o.Live = m.Now, m.Server, m.Server
	r, err := ephemeraljob.New(interceptor.NewClient(m.Server, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, key client.ObjectKey, x client.Object, o ...client.GetOption,
		) error {
			return cache.Get(ctx, key, x, o...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return cache.List(ctx, list, o...)
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, x client.Object, p client.Patch, o ...client.PatchOption,
		) error {
			if err := m.faultOf("finalizers", x.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, x, p, o...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, x client.Object, p client.Patch,
			o ...client.SubResourcePatchOption,
		) error {
			switch err := m.faultOf(sub, x.GetName()); {
			case errors.Is(err, errBug):
				panic(err)
			case err != nil:
				return err
			}
			return c.SubResource(sub).Patch(ctx, x, p, o...)
		},
	}), o)
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

func (m *model) faultOf(sub, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sub != "ephemeralcontainers" {
		name = sub
	}
	return m.faults[name]
}

// fault sets the answer to the writes of a pod, of "finalizers" or of "status"; nil for the own one of the server.
func (m *model) fault(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[name] = err
}

// errBug is a panic of the client.
var errBug = errors.New("a bug")

func refusal() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("violates PodSecurity"))
}

func (m *model) addPod(name string) {
	m.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(m.Clock),
	}}
	pod.Spec.NodeName, pod.Status.Phase = "node", corev1.PodRunning
	m.Put(pod)
}

func (m *model) pod(name string) *corev1.Pod {
	m.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	m.Look(pod)
	return pod
}

func (m *model) deletePod(name string) {
	m.Helper()
	if err := m.Server.Delete(m.Context(), m.pod(name), client.GracePeriodSeconds(0)); err != nil {
		m.Fatal(err)
	}
}

// create creates a job with nothing but what is required, and what changes add.
func (m *model) create(changes ...change) *job {
	m.Helper()
	j := &job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "debug"}}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	j.Spec.Template.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell", Image: "busybox:1"}},
	}
	for _, c := range changes {
		c(j)
	}
	if err := m.Server.Create(m.Context(), j); err != nil {
		m.Fatal(err)
	}
	return j
}

// change patches the job.
func (m *model) change(j *job, c change) {
	m.Helper()
	objects.Change(m.Model, j, c)
}

func parallelism(n int32) change { return func(j *job) { j.Spec.Parallelism = &n } }
func replicas(n int32) change    { return func(j *job) { j.Spec.Replicas = &n } }
func deadline(n int64) change    { return func(j *job) { j.Spec.ActiveDeadlineSeconds = &n } }
func ttl(n int32) change         { return func(j *job) { j.Spec.TTLSecondsAfterFinished = &n } }
func paused(p bool) change       { return func(j *job) { j.Spec.Paused = p } }
func finalizer(j *job)           { j.Finalizers = []string{v1alpha1.EphemeralJobFinalizerKey} }
func named(name string) change   { return func(j *job) { j.Name = name } }
func container(name string) change {
	return func(j *job) { j.Spec.Template.EphemeralContainers[0].Name = name }
}

// pods returns all pods in the order of their creation.
func (m *model) pods() []*corev1.Pod {
	m.Helper()
	pods := m.Pods()
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return pods
}

// run is one step of the kubelets: a container is reported, starts, or ends.
func (m *model) run() {
	m.Helper()
	for _, pod := range m.pods() {
		changed := false
		for i := range pod.Spec.EphemeralContainers {
			changed = m.step(pod, pod.Spec.EphemeralContainers[i].Name) || changed
		}
		if changed {
			m.Put(pod)
		}
	}
}

// step reports whether a container has changed.
func (m *model) step(pod *corev1.Pod, name string) bool {
	list := &pod.Status.EphemeralContainerStatuses
	i := slices.IndexFunc(*list, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		*list = append(*list, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
		return true
	}
	switch s, end := &(*list)[i].State, m.ends[pod.Name]; {
	case s.Terminated != nil, s.Waiting != nil && end == "pulls", s.Running != nil && end == "runs":
		return false
	case s.Waiting != nil:
		*s = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(m.Clock)}}
	case end == "failed":
		*s = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, FinishedAt: metav1.NewTime(m.Clock),
		}}
	default:
		*s = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(m.Clock)}}
	}
	return true
}

// picture is the containers of each pod.
func (m *model) picture() string {
	m.Helper()
	var all []string
	for _, pod := range m.pods() {
		var states []string
		for i := range pod.Spec.EphemeralContainers {
			name := pod.Spec.EphemeralContainers[i].Name
			at := slices.IndexFunc(pod.Status.EphemeralContainerStatuses, func(s corev1.ContainerStatus) bool {
				return s.Name == name
			})
			state := "added"
			if at >= 0 {
				state = word(pod.Status.EphemeralContainerStatuses[at].State)
			}
			states = append(states, name+" "+state)
		}
		if len(states) == 0 {
			states = []string{"-"}
		}
		all = append(all, pod.Name+": "+strings.Join(states, " and "))
	}
	return strings.Join(all, ", ")
}

func word(s corev1.ContainerState) string {
	switch {
	case s.Terminated != nil:
		return fmt.Sprintf("exited with %d", s.Terminated.ExitCode)
	case s.Running != nil:
		return "runs"
	}
	return "waits"
}

func counters(j *job) string {
	s := &j.Status
	text := fmt.Sprintf("%s: match %d, waiting %d, running %d, succeeded %d, failed %d",
		s.Phase, s.Matches, s.Waiting, s.Running, s.Succeeded, s.Failed)
	for _, c := range s.Conditions {
		if c.Type != v1alpha1.EJobInitialized {
			text += fmt.Sprintf("; %s %s", c.Type, c.Reason)
		}
	}
	return text
}

// turn is a pass, and a step of the kubelets.
func (m *model) turn() {
	m.Helper()
	m.Reconcile()
	m.run()
	m.Advance(time.Second)
}

// request is that of a job.
func request(j *job) ctrl.Request { return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(j)} }

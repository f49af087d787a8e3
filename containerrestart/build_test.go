package containerrestart_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

type (
	request  = appsv1beta1.ContainerRecreateRequest
	strategy = appsv1beta1.ContainerRecreateRequestStrategy
	state    = appsv1beta1.ContainerRecreateRequestContainerRecreateState
	phase    = appsv1beta1.ContainerRecreateRequestPhase
)

const (
	pending    = appsv1beta1.ContainerRecreateRequestPending
	recreating = appsv1beta1.ContainerRecreateRequestRecreating
	succeeded  = appsv1beta1.ContainerRecreateRequestSucceeded
	failed     = appsv1beta1.ContainerRecreateRequestFailed
	completed  = appsv1beta1.ContainerRecreateRequestCompleted

	activeLabel = appsv1beta1.ContainerRecreateRequestActiveKey
	finalizer   = appsv1beta1.ContainerRecreateRequestUnreadyAcquiredKey
	graceType   = appsv1beta1.ContainerRecreateRequestPreRecreateGrace
)

// at is so many seconds after the request was made.
func at(seconds float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func stamp(seconds float64) metav1.Time { return metav1.NewTime(at(seconds)) }

func id(name string, restarts int) string {
	return fmt.Sprintf("containerd://%s-%d", name, restarts)
}

// patched returns the pod that the API server makes of a write, which it must accept.
func patched(pod *corev1.Pod, w *write.Write) *corev1.Pod {
	if w == nil {
		return pod
	}
	data, err := w.Data()
	if err != nil {
		panic(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		panic(err)
	}
	before, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, data))
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(after, next); err != nil {
		panic(err)
	}
	return next
}

// changes returns the conditions that are other than before, by type.
func changes(before, after *corev1.Pod) []corev1.PodCondition {
	if before == nil {
		return nil
	}
	var all []corev1.PodCondition
	for _, c := range after.Status.Conditions {
		if old := lifecycle.ConditionOf(before, c.Type); old == nil || old.Status != c.Status || old.Message != c.Message {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b corev1.PodCondition) int { return cmp.Compare(a.Type, b.Type) })
	return all
}

// newPod runs the containers app and log, and the native sidecar mesh.
func newPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Spec: corev1.PodSpec{
			NodeName: "n1", TerminationGracePeriodSeconds: ptr.To[int64](10),
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}},
			InitContainers: []corev1.Container{
				{Name: "setup"},
				{Name: "mesh", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{
				{Name: "app", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}, {Name: "log"},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.7",
			Conditions: []corev1.PodCondition{
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
				{Type: kruise.KruisePodReadyConditionType, Status: corev1.ConditionTrue},
			},
			InitContainerStatuses: []corev1.ContainerStatus{running("mesh", 0, -60)},
			ContainerStatuses:     []corev1.ContainerStatus{running("app", 0, -60), running("log", 0, -60)},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// running is the status of a ready container.
func running(name string, restarts int, since float64) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, Ready: true, ContainerID: id(name, restarts), RestartCount: int32(restarts),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(since)}},
	}
}

func preStop(container int, h corev1.LifecycleHandler) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Lifecycle = &corev1.Lifecycle{PreStop: &h}
	}
}

func execHook(command ...string) corev1.LifecycleHandler {
	return corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}
}

func httpHook(get corev1.HTTPGetAction) corev1.LifecycleHandler {
	return corev1.LifecycleHandler{HTTPGet: &get}
}

func port(name string) intstr.IntOrString { return intstr.FromString(name) }

// asked is a request as a user writes it.
func asked(change ...func(*request)) *request {
	r := &request{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "again", UID: "r1", ResourceVersion: "5", CreationTimestamp: stamp(0),
		},
		Spec: appsv1beta1.ContainerRecreateRequestSpec{
			PodName: "web", Containers: []appsv1beta1.ContainerRecreateRequestContainer{{Name: "app"}, {Name: "log"}},
		},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

// admitted is a request as it is stored.
func admitted(change ...func(*request)) *request {
	r, faults := containerrestart.Admit(asked(), newPod(), &corev1.Node{})
	if faults != nil {
		panic(faults)
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func in(p phase, states ...state) func(*request) {
	return func(r *request) { r.Status.Phase, r.Status.ContainerRecreateStates = p, states }
}

func with(s strategy) func(*request) {
	return func(r *request) {
		s.TerminationGracePeriodSeconds = r.Spec.Strategy.TerminationGracePeriodSeconds
		if s.FailurePolicy == "" {
			s.FailurePolicy = r.Spec.Strategy.FailurePolicy
		}
		*r.Spec.Strategy = s
	}
}

func done(seconds float64) func(*request) {
	return func(r *request) { r.Status.Phase, r.Status.CompletionTime = completed, ptr.To(stamp(seconds)) }
}

func deleting(r *request) { r.DeletionTimestamp = ptr.To(stamp(1)) }

func named(name string, created float64) func(*request) {
	return func(r *request) { r.Name, r.UID, r.CreationTimestamp = name, "of-"+r.UID, stamp(created) }
}

func graced(seconds float64) func(*request) {
	return func(r *request) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
			Type: graceType, Status: metav1.ConditionTrue, LastTransitionTime: stamp(seconds),
		})
	}
}

func known(names ...string) func(*request) {
	return func(r *request) {
		for _, name := range names {
			r.Status.ContainerStatusSnapshot = append(r.Status.ContainerStatusSnapshot,
				appsv1beta1.ContainerRecreateRequestSyncContainerStatus{
					Name: name, Ready: true, RestartCount: 1, ContainerID: id(name, 1),
				})
		}
	}
}

// up is a container that the runtime runs.
func up(name string, restarts int, since float64) containerrestart.Container {
	return containerrestart.Container{
		Name:         name,
		ID:           id(name, restarts),
		State:        containerrestart.StateRunning,
		RestartCount: int32(restarts),
		Created:      at(since),
		Started:      at(since),
	}
}

func down(name string, restarts int, since float64) containerrestart.Container {
	c := up(name, restarts, since)
	c.State, c.ExitCode, c.Reason = containerrestart.StateExited, 137, "Error"
	return c
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func patch(t *testing.T, w *write.Write) string {
	t.Helper()
	if w == nil {
		return ""
	}
	b, err := w.Data()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func codes(notes []note.Note) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code)
	}
	return all
}

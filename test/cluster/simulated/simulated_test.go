//go:build simulated

package simulated_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPods(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T, *world){
		"a new pod looks as a kubelet reports it":     testNew,
		"a changed image restarts that container":     testImage,
		"a changed image of a sidecar restarts it":    testSidecar,
		"labels and annotations change nothing":       testMetadata,
		"a resize is taken on, then done":             testResize,
		"readiness gates count":                       testReadinessGate,
		"a finalizer keeps a pod that has ended":      testFinalizer,
		"a grace period is waited for":                testGrace,
		"a pod that has nothing but a container ends": testBare,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

func testNew(t *testing.T, w *world) {
	pod := w.create(t, podOf("new"))
	pod = w.await(t, pod.Name, ready)
	for _, c := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReadyToStartContainers,
	} {
		if !conditionIs(pod, c, corev1.ConditionTrue) {
			t.Errorf("condition %s is not True", c)
		}
	}
	s := pod.Status
	if s.Phase != corev1.PodRunning || s.QOSClass != corev1.PodQOSBurstable || s.StartTime == nil {
		t.Errorf("phase %s, QoS class %s, start time %v", s.Phase, s.QOSClass, s.StartTime)
	}
	if s.PodIP == "" || len(s.PodIPs) != 1 || s.PodIPs[0].IP != s.PodIP || s.HostIP == "" || len(s.HostIPs) != 1 ||
		s.HostIP == s.PodIP {
		t.Errorf("pod IP %s %v, host IP %s %v", s.PodIP, s.PodIPs, s.HostIP, s.HostIPs)
	}
	if s.ObservedGeneration != pod.Generation {
		t.Errorf("observed generation %d, want %d", s.ObservedGeneration, pod.Generation)
	}
	ids := map[string]bool{}
	for name, prefix := range map[string]string{
		"init": "docker.io/library/busybox@sha256:", "sidecar": "docker.io/mesh/proxy@sha256:",
		"main": "docker.io/library/nginx@sha256:", "other": "registry.example:5000/other@sha256:",
	} {
		c := statusOf(pod, name)
		ids[c.ContainerID] = true
		if !c.Ready || !strings.HasPrefix(c.ImageID, prefix) || !strings.HasPrefix(c.ContainerID, "containerd://") {
			t.Errorf("container %s: %+v", name, c)
		}
		runs := name != "init"
		if (c.State.Running != nil) != runs || (c.State.Terminated != nil) == runs || c.Started == nil || *c.Started != runs {
			t.Errorf("container %s: state %+v", name, c.State)
		}
	}
	if len(ids) != 4 {
		t.Errorf("container IDs are not unique: %v", ids)
	}
	main := statusOf(pod, "main")
	if main.Resources.Requests.Cpu().String() != "500m" || main.AllocatedResources.Cpu().String() != "500m" {
		t.Errorf("resources %v, allocated %v", main.Resources, main.AllocatedResources)
	}
}

func testImage(t *testing.T, w *world) { restarts(t, w, "image", "containers", "main") }

func testSidecar(t *testing.T, w *world) { restarts(t, w, "sidecar", "initContainers", "sidecar") }

func restarts(t *testing.T, w *world, name, list, container string) {
	t.Helper()
	w.create(t, podOf(name))
	before := w.await(t, name, ready)
	w.patch(t, name, `{"spec":{"`+list+`":[{"name":"`+container+`","image":"nginx:2"}]}}`)
	stopped := w.await(t, name, func(p *corev1.Pod) bool { return !ready(p) })
	if s := statusOf(stopped, container); s.State.Terminated == nil || s.Ready ||
		s.ContainerID != statusOf(before, container).ContainerID {
		t.Errorf("while it is not ready: %+v", s)
	}
	after := w.await(t, name, ready)
	was, is := statusOf(before, container), statusOf(after, container)
	if is.RestartCount != 1 || is.ContainerID == was.ContainerID || is.ImageID == was.ImageID || is.Image != "nginx:2" ||
		is.LastTerminationState.Terminated == nil || is.LastTerminationState.Terminated.ContainerID != was.ContainerID {
		t.Errorf("before: %+v\nafter: %+v", was, is)
	}
	for _, s := range slices.Concat(before.Status.ContainerStatuses, before.Status.InitContainerStatuses) {
		if diff := cmp.Diff(s, statusOf(after, s.Name)); s.Name != container && diff != "" {
			t.Errorf("container %s changed (-before +after):\n%s", s.Name, diff)
		}
	}
	if after.Status.ObservedGeneration != after.Generation || after.Generation == before.Generation {
		t.Errorf("generation %d, observed %d", after.Generation, after.Status.ObservedGeneration)
	}
	if after.Status.PodIP != before.Status.PodIP {
		t.Error("the pod has another IP")
	}
}

func testMetadata(t *testing.T, w *world) {
	w.create(t, podOf("metadata"))
	before := w.await(t, "metadata", ready)
	w.patch(t, "metadata", `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`)
	// What makes the pod known to be synced again proves that nothing else was written before.
	w.patch(t, "metadata", `{"spec":{"activeDeadlineSeconds":100000}}`)
	after := w.await(t, "metadata", func(p *corev1.Pod) bool { return p.Status.ObservedGeneration == before.Generation+1 })
	if diff := cmp.Diff(before.Status.ContainerStatuses, after.Status.ContainerStatuses); diff != "" {
		t.Errorf("containers changed (-before +after):\n%s", diff)
	}
}

const bigger = `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}`

func resized(p *corev1.Pod) bool {
	return statusOf(p, "main").Resources.Requests.Cpu().Value() == 2
}

func testResize(t *testing.T, w *world) {
	w.create(t, podOf("resize"))
	before := w.await(t, "resize", ready)
	w.patch(t, "resize", bigger, "resize")
	during := w.await(t, "resize", func(p *corev1.Pod) bool { return condition(p, corev1.PodResizeInProgress) != nil })
	if s := statusOf(during, "main"); s.AllocatedResources.Cpu().Value() != 2 || resized(during) {
		t.Errorf("while resizing: allocated %v, has %v", s.AllocatedResources, s.Resources)
	}
	after := w.await(t, "resize", resized)
	was, is := statusOf(before, "main"), statusOf(after, "main")
	if condition(after, corev1.PodResizeInProgress) != nil || is.ContainerID != was.ContainerID || is.RestartCount != 0 ||
		!ready(after) {
		t.Errorf("after the resize: %+v", after.Status)
	}
}

func testReadinessGate(t *testing.T, w *world) {
	w.create(t, podOf("gate", func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	}))
	pod := w.await(t, "gate", func(p *corev1.Pod) bool {
		return conditionIs(p, corev1.ContainersReady, corev1.ConditionTrue)
	})
	if ready(pod) {
		t.Fatal("ready without its gate")
	}
	w.patch(t, "gate",
		`{"status":{"conditions":[{"type":"example.com/gate","status":"True","message":"kept"}]}}`, "status")
	pod = w.await(t, "gate", ready)
	if c := condition(pod, "example.com/gate"); c == nil || c.Message != "kept" {
		t.Errorf("the gate's condition is %+v", c)
	}
	w.patch(t, "gate", `{"status":{"conditions":[{"type":"example.com/gate","status":"False"}]}}`, "status")
	w.await(t, "gate", func(p *corev1.Pod) bool { return conditionIs(p, corev1.PodReady, corev1.ConditionFalse) })
}

func testFinalizer(t *testing.T, w *world) {
	w.create(t, podOf("finalizer", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} }))
	w.await(t, "finalizer", ready)
	w.delete(t, "finalizer")
	pod := w.await(t, "finalizer", func(p *corev1.Pod) bool { return *p.DeletionGracePeriodSeconds == 0 })
	if pod == nil || pod.Status.Phase != corev1.PodSucceeded || ready(pod) ||
		statusOf(pod, "main").State.Terminated == nil {
		t.Fatalf("the pod that waits for its finalizer: %+v", pod)
	}
	w.patch(t, "finalizer", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/wait"]}}`)
	w.await(t, "finalizer", func(*corev1.Pod) bool { return false })
}

func testGrace(t *testing.T, w *world) {
	w.create(t, podOf("grace"))
	w.await(t, "grace", ready)
	start := time.Now()
	w.delete(t, "grace")
	w.await(t, "grace", func(*corev1.Pod) bool { return false })
	if took := time.Since(start); took < 2*time.Second || took > 10*time.Second {
		t.Errorf("gone after %s, want about 2s", took)
	}
}

func (w *world) delete(t *testing.T, name string) {
	t.Helper()
	if err := w.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testBare(t *testing.T, w *world) {
	grace := int64(1)
	w.create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "main", Image: "nginx"}},
	}})
	w.await(t, "bare", ready)
	w.delete(t, "bare")
	w.await(t, "bare", func(*corev1.Pod) bool { return false })
}

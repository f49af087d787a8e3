package containerrestart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
)

const (
	here      = "node-1"
	namespace = "shop"
	podName   = "web"
	podIs     = types.UID("u1")
	engine    = "containerd"
)

// world is an API server, a manager and a node with one pod, in the time of a bubble. Daemons run in it, one after
// the other.
type world struct {
	mu      sync.Mutex
	rand    *rand.Rand // of what goes wrong
	user    *rand.Rand // of what is asked for
	began   time.Time
	version int
	stored  map[string]*request // by name
	pod     *corev1.Pod
	ran     []cri.Container // all that there have been, the newest last
	ways    map[string]way  // by container
	options Options
	now     *daemon
	// successor is born after a death.
	successor func()
	lag       int // of caches, in milliseconds at most
	risk      int // of a call that fails or is the last, one in so many; 0 for none
	deaths    int
	failures  int
	// stops and hooks count what has happened to containers, by name; writes, by request, what the daemons have written.
	stops, hooks, writes map[string]int
	conflicts            int
	calls                int // of the runtime
	lines                []string
}

// way is how a container behaves.
type way struct {
	hook, slow  int // seconds that its hook takes, and that it takes to be ready
	unstoppable bool
}

func newWorld(seed int64, o Options) *world {
	w := &world{
		rand:    rand.New(rand.NewSource(seed)),
		user:    rand.New(rand.NewSource(-seed)),
		began:   time.Now(),
		stored:  map[string]*request{},
		ways:    map[string]way{},
		options: o,
		lag:     300,
		stops:   map[string]int{},
		hooks:   map[string]int{},
		writes:  map[string]int{},
	}
	w.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName, UID: podIs},
		Spec:       corev1.PodSpec{NodeName: here},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7"},
	}
	for _, name := range []string{"app", "log", "mesh"} {
		w.pod.Spec.Containers = append(w.pod.Spec.Containers, corev1.Container{Name: name, Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain", name}}},
		}})
		w.start(name, 0)
	}
	w.report()
	return w
}

func (w *world) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%7.2f  %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...)))
}

func (w *world) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// start runs another container of a name.
func (w *world) start(name string, restarts int) {
	id := fmt.Sprintf("%s-%d", name, restarts)
	w.say("kubelet: starts %s", id)
	w.ran = append(w.ran, cri.Container{
		ID: id, Name: name, SandboxID: "sandbox", State: cri.Running, CreatedAt: time.Now(), StartedAt: time.Now(),
		Labels: map[string]string{
			cri.LabelContainerName: name,
			cri.LabelPodName:       podName,
			cri.LabelPodNamespace:  namespace,
			cri.LabelPodUID:        string(podIs),
		},
		Annotations: map[string]string{cri.AnnotationRestartCount: fmt.Sprint(restarts)},
	})
}

// newest is the place of the latest container of a name.
func (w *world) newest(name string) int {
	for i, c := range slices.Backward(w.ran) {
		if c.Name == name {
			return i
		}
	}
	return -1
}

// kubelet starts what has ended, and reports.
func (w *world) kubelet() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.pod.Spec.Containers {
		name := w.pod.Spec.Containers[i].Name
		last := w.ran[w.newest(name)]
		if last.State == cri.Exited && time.Since(last.FinishedAt) >= time.Second {
			n, _ := last.RestartCount()
			w.start(name, int(n)+1)
		}
	}
	w.report()
}

// report writes the status of the pod.
func (w *world) report() {
	pod := w.pod.DeepCopy()
	pod.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		c := w.ran[w.newest(name)]
		n, _ := c.RestartCount()
		status := corev1.ContainerStatus{Name: name, ContainerID: engine + "://" + c.ID, RestartCount: n}
		if c.State == cri.Running {
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt.Truncate(time.Second))}
			status.Ready = n == 0 || time.Since(c.StartedAt) >= time.Duration(w.ways[name].slow)*time.Second
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	w.pod = pod
}

// manage does the manager's part.
func (w *world) manage() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.stored)) {
		r := w.stored[name]
		plan := containerrestart.Supervise(containerrestart.Input{
			Request: r, Pod: w.pod, Others: slices.Collect(maps.Values(w.stored)), Now: time.Now(),
		})
		if plan.Write != nil {
			body, err := plan.Write.Data()
			if err != nil {
				panic(err)
			}
			if _, err := w.patch(name, body); err != nil {
				panic(err)
			}
		}
		if plan.RemoveActive {
			r = w.stored[name].DeepCopy()
			delete(r.Labels, v1beta1.ContainerRecreateRequestActiveKey)
			w.store(r)
		}
	}
}

// live lets time pass for kubelet and manager.
func (w *world) live(ctx context.Context) {
	//nolint:forbidigo // the time of the bubble: not in the moment in which others do something
	time.Sleep(250 * time.Millisecond)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.kubelet()
			w.manage()
		case <-ctx.Done():
			return
		}
	}
}

// create admits and stores a request.
func (w *world) create(name string, change func(*request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ask := &request{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: podName, Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}, {Name: "log"}},
			Strategy: &v1beta1.ContainerRecreateRequestStrategy{},
		},
	}
	if change != nil {
		change(ask)
	}
	r, faults := containerrestart.Admit(ask, w.pod, &corev1.Node{})
	if len(faults) > 0 {
		panic(faults.ToAggregate())
	}
	r.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	w.say("user: creates %s", name)
	w.store(r)
}

func (w *world) store(r *request) {
	w.version++
	r.ResourceVersion = fmt.Sprint(w.version)
	w.stored[r.Name] = r
	if w.now != nil {
		w.now.learn(r)
	}
}

// patch changes a status as the API server does.
func (w *world) patch(name string, body []byte) (*request, error) {
	resource := v1beta1.GroupVersion.WithResource("containerrecreaterequests").GroupResource()
	var sent struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
		Status map[string]any
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	old := w.stored[name]
	switch {
	case old == nil:
		return nil, apierrors.NewNotFound(resource, name)
	case old.UID != sent.Metadata.UID,
		sent.Metadata.ResourceVersion != "" && sent.Metadata.ResourceVersion != old.ResourceVersion:
		return nil, apierrors.NewConflict(resource, name, errors.New("it has changed"))
	}
	var status map[string]any
	text, err := json.Marshal(old.Status)
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	if err != nil {
		return nil, err
	}
	maps.Copy(status, sent.Status)
	maps.DeleteFunc(status, func(_ string, v any) bool { return v == nil })
	if text, err = json.Marshal(status); err != nil {
		return nil, err
	}
	r := old.DeepCopy()
	r.Status = v1beta1.ContainerRecreateRequestStatus{}
	if err := json.Unmarshal(text, &r.Status); err != nil {
		return nil, err
	}
	w.say("api: %s is %s", name, told(r))
	w.store(r)
	return r, nil
}

// told is a status without what depends on the moment.
func told(r *request) string {
	lines := []string{string(r.Status.Phase) + " " + r.Status.Message}
	for _, s := range r.Status.ContainerRecreateStates {
		lines = append(lines, fmt.Sprintf("%s %s %v %s", s.Name, s.Phase, s.IsKilled, s.Message))
	}
	return strings.Join(lines, "; ")
}

// ended says whether all requests have, and were cleaned up after.
func (w *world) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.stored {
		if !over(r) || r.Labels[v1beta1.ContainerRecreateRequestActiveKey] != "" {
			return false
		}
	}
	return len(w.now.reconciler.workers.Known()) == 0
}

package workload_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/rig/patches"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// server holds pods, applies the writes of passes, and fails those that a test names.
type server struct {
	testing.TB

	pods map[string]*corev1.Pod
	// fails returns the answer to a write instead of making it; nil to make it.
	fails func(*workload.Write) error
	sent  []string
	// reverts changes a pod in the answer to a patch; nil for nothing.
	reverts func(*corev1.Pod)
	// now is the time of the server, and slow how long a write takes.
	now  time.Time
	slow time.Duration
}

func template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}
}

func rev(t testing.TB, name, image string) workload.Revision {
	t.Helper()
	data, err := revision.Encode(template(image))
	if err != nil {
		t.Fatal(err)
	}
	return workload.Revision{Name: name, Data: data}
}

// ready is a pod that serves.
func ready(name, revisionName, image string) *corev1.Pod {
	condition := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{
			Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1",
			Labels: map[string]string{
				kruise.PodRevisionLabelKey: revisionName, kruise.LifecycleStateKey: string(kruise.LifecycleStateNormal),
			},
		},
		Spec: template(image).Spec,
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				condition(corev1.PodReady), condition(corev1.ContainersReady), condition(kruise.InPlaceUpdateReady),
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: image, ImageID: "id-" + image, ContainerID: "c-" + image, Ready: true,
			}},
		},
	}
	pod.Spec.NodeName = "node-1"
	inplace.EnsureReadinessGate(&pod.Spec, nil)
	return pod
}

func newServer(t testing.TB, pods ...*corev1.Pod) *server {
	t.Helper()
	s := &server{TB: t, pods: map[string]*corev1.Pod{}, now: noon}
	for _, pod := range pods {
		s.pods[pod.Name] = pod
	}
	return s
}

func (s *server) all() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		pods = append(pods, s.pods[name])
	}
	return pods
}

// input is three pods on the way from web-1 to web-2, one at a time.
func (s *server) input() workload.Input {
	return workload.Input{
		Scale:     scale.Input{Now: s.now, Limits: scale.Limits{Replicas: int32(len(s.pods)), MaxUnavailable: 1}},
		Instances: workload.Pods(s.all()),
		Update:    rev(s, "web-2", "web:2"), Current: rev(s, "web-1", "web:1"),
		Strategy: workload.InPlaceIfPossible,
		Build:    s.build,
	}
}

func (*server) build(creations []workload.Creation) ([][]write.Object, error) {
	all := make([][]write.Object, len(creations))
	for i, c := range creations {
		pod := ready(fmt.Sprintf("new-%d", i), c.Revision, "web:2")
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		all[i] = []write.Object{pod}
	}
	return all, nil
}

// run makes a pass, and sends its writes in order.
func (s *server) run(in workload.Input) *workload.Pass {
	s.Helper()
	pass, err := workload.Plan(in)
	if err != nil {
		s.Fatal(err)
	}
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		for len(writes) > 0 {
			w := writes[0]
			pod, err := s.send(w)
			writes = append(writes[1:], pass.Answer(s.now, w, pod, err)...)
		}
	}
	return pass
}

func (s *server) send(w *workload.Write) (*corev1.Pod, error) {
	s.Helper()
	name := w.Object.GetName()
	s.now = s.now.Add(s.slow)
	s.sent = append(s.sent, fmt.Sprintf("%s %s", w.Action, name))
	if s.fails != nil {
		if err := s.fails(w); err != nil {
			return nil, err
		}
	}
	switch w.Verb {
	case write.Ask:
		return nil, nil
	case write.Create:
		s.pods[name] = w.Pod
		return w.Pod, nil
	case write.Delete, write.Evict:
		delete(s.pods, name)
		return nil, nil
	}
	data, err := w.Data()
	if err != nil {
		s.Fatal(err)
	}
	s.pods[name] = patched(s, s.pods[name], data)
	if s.reverts != nil {
		s.reverts(s.pods[name])
	}
	return s.pods[name], nil
}

func patched(t testing.TB, pod *corev1.Pod, data []byte) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patches.Apply(before, types.JSONPatchType, data, pod)
	if err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	fresh := &corev1.Pod{}
	if err := json.Unmarshal(after, fresh); err != nil {
		t.Fatal(err)
	}
	return fresh
}

// restart has the node run what the specs say.
func (s *server) restart() {
	for name, pod := range s.pods {
		fresh := pod.DeepCopy()
		image := fresh.Spec.Containers[0].Image
		fresh.Status.ContainerStatuses[0].Image, fresh.Status.ContainerStatuses[0].ImageID,
			fresh.Status.ContainerStatuses[0].ContainerID = image, "id-"+image, "c-"+image
		open := slices.ContainsFunc(fresh.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == kruise.InPlaceUpdateReady && c.Status == corev1.ConditionTrue
		})
		for i := range fresh.Status.Conditions {
			if c := &fresh.Status.Conditions[i]; c.Type == corev1.PodReady && open {
				c.Status = corev1.ConditionTrue
			}
		}
		s.pods[name] = fresh
	}
}

func refused() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", fmt.Errorf("a policy rejects it"))
}

func outdated() error {
	return apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", "test failed", 0, false)
}

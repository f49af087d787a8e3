package inplace_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

var again = flag.Uint64("seed", 0, "of the random tests, to repeat what failed")

// newRand prints its seed when the test fails; -seed repeats it.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if *again > 0 {
		seed = *again
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with -seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// fewer divides the number of random cases. Every run draws others, and make nightly runs them ten times.
func fewer() int {
	if testing.Short() {
		return 10 * divisor
	}
	return divisor
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// noon is when most tests happen. Times in annotations have whole seconds.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// template is one of these containers, with the readiness gate.
func template(containers ...corev1.Container) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	t.Spec.Containers = containers
	return t
}

func container(name, image string, more ...func(*corev1.Container)) corev1.Container {
	c := corev1.Container{Name: name, Image: image}
	for _, f := range more {
		f(&c)
	}
	return c
}

// with changes a copy of a template.
func with(t *corev1.PodTemplateSpec, changes ...func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	for _, change := range changes {
		change(t)
	}
	return t
}

func label(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataLabel(&t.ObjectMeta, key, value) }
}

func annotate(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, value) }
}

func finalizers(names ...string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Finalizers = names }
}

// image sets the image of the container at a place.
func image(at int, name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[at].Image = name }
}

func noGate(t *corev1.PodTemplateSpec) { t.Spec.ReadinessGates = nil }

// fed adds a variable that is fed from a field.
func fed(env, field string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.Env = append(c.Env, corev1.EnvVar{
			Name: env, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}},
		})
	}
}

// launch gives a container a launch priority, as the pod webhook does.
func launch(priority int) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.Env = append(c.Env, corev1.EnvVar{Name: kruise.ContainerLaunchBarrierEnvName, ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				Key: fmt.Sprintf("%s%d", kruise.ContainerLaunchBarrierKeyPrefix, priority),
			},
		}})
	}
}

func requests(list ...string) func(*corev1.Container) {
	return func(c *corev1.Container) { c.Resources.Requests = amounts(list...) }
}

func limits(list ...string) func(*corev1.Container) {
	return func(c *corev1.Container) { c.Resources.Limits = amounts(list...) }
}

func restartsOn(name corev1.ResourceName) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.ResizePolicy = append(c.ResizePolicy, corev1.ContainerResizePolicy{
			ResourceName: name, RestartPolicy: corev1.RestartContainer,
		})
	}
}

// amounts are pairs of a name and an amount.
func amounts(list ...string) corev1.ResourceList {
	r := corev1.ResourceList{}
	for i := 0; i < len(list); i += 2 {
		r[corev1.ResourceName(list[i])] = resource.MustParse(list[i+1])
	}
	return r
}

// running is a pod of a template, ready and at a revision.
func running(t *corev1.PodTemplateSpec, revision string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	pod.Name, pod.UID, pod.ResourceVersion = "web-1", "uid-1", "10"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[kruise.PodRevisionLabelKey] = revision
	pod.Status.Phase = corev1.PodRunning
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, statusOf(c))
	}
	for _, c := range pod.Spec.InitContainers {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, statusOf(c))
	}
	for _, condition := range []corev1.PodConditionType{
		corev1.ContainersReady, corev1.PodReady, kruise.InPlaceUpdateReady,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue,
		})
	}
	return pod
}

// statusOf is the status of a container that does what its spec says.
func statusOf(c corev1.Container) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: "id-of-" + c.Image, ContainerID: "containerd://" + c.Name + "-0", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Resources: c.Resources.DeepCopy(),
	}
}

// diff is the change between two templates, of everything that can change.
func diff(t *testing.T, from, to *corev1.PodTemplateSpec) *inplace.Change {
	t.Helper()
	c, err := inplace.Diff(from, to, everything())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func everything() inplace.Policy {
	return inplace.Policy{Env: inplace.EnvRestart, Resources: inplace.ResourcesAdded}
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return &corev1.PodCondition{Type: kind}
}

// restart is what the node does with the container at a place: it runs what the spec says, as a new container.
func restart(pod *corev1.Pod, at int) {
	s := &pod.Status.ContainerStatuses[at]
	s.RestartCount++
	s.ContainerID = fmt.Sprintf("containerd://%s-%d", s.Name, s.RestartCount)
	s.Image = pod.Spec.Containers[at].Image
	s.ImageID = "id-of-" + s.Image
	s.Resources = pod.Spec.Containers[at].Resources.DeepCopy()
}

// jsonOf is for what always has a JSON.
func jsonOf(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func stateOf(t *testing.T, pod *corev1.Pod) *kruise.InPlaceUpdateState {
	t.Helper()
	s, err := inplace.StateOf(pod, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// batches are the names of the containers in the batches of a state.
func batches(s *kruise.InPlaceUpdateState) [][]string {
	var names [][]string
	for _, b := range s.ContainerBatchesRecord {
		names = append(names, b.Containers)
	}
	return names
}

func withInit() *corev1.PodTemplateSpec {
	t := template(container("c1", "app:1"), container("c2", "app:1"))
	t.Spec.InitContainers = []corev1.Container{container("i1", "init:1"), container("i2", "init:1")}
	return t
}

package stored_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/objects"
)

// Pods stay equal, also while other pods take what they have.
func TestShared(t *testing.T) {
	var list corev1.PodList
	objects.Recorded(t, "2-updating/pods.yaml", &list)
	var shared stored.LeanPods
	var wait sync.WaitGroup
	for range 3 {
		for i := range list.Items {
			pod, want := list.Items[i].DeepCopy(), list.Items[i].DeepCopy()
			stored.LeanPod(want)
			wait.Add(1)
			go func() {
				defer wait.Done()

				if shared.Pod(pod); !equality.Semantic.DeepEqual(want, pod) {
					t.Errorf("%s is another pod", pod.Name)
				}
			}()
		}
	}
	wait.Wait()
}

// Equal texts of all pods are one.
func TestSharedTexts(t *testing.T) {
	var shared stored.LeanPods
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	one := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: strings.Clone("node-1"), NodeSelector: map[string]string{strings.Clone("zone"): "a"},
	}}
	two := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: strings.Clone("node-1"), NodeSelector: map[string]string{strings.Clone("zone"): "a"},
	}}
	one.Spec.Containers = []corev1.Container{{Image: strings.Clone("nginx:1")}}
	two.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: strings.Clone("nginx:1")}}
	shared.Pod(one)
	shared.Pod(two)
	if !same(one.Spec.NodeName, two.Spec.NodeName) ||
		!same(one.Spec.Containers[0].Image, two.Status.ContainerStatuses[0].Image) {
		t.Error("equal texts are two")
	}
	for key := range one.Spec.NodeSelector {
		for other := range two.Spec.NodeSelector {
			if !same(key, other) {
				t.Error("equal keys are two")
			}
		}
	}
}

// ofTemplate is a pod of a CloneSet.
func ofTemplate(revision string, c corev1.Container) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels:          map[string]string{"controller-revision-hash": revision},
		OwnerReferences: []metav1.OwnerReference{{Kind: "CloneSet", UID: types.UID("web"), Controller: ptr.To(true)}},
	}}
	pod.Spec.Containers = []corev1.Container{*c.DeepCopy()}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "spot", TolerationSeconds: ptr.To[int64](300)}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: c.Name, Resources: &corev1.ResourceRequirements{Requests: c.Resources.DeepCopy().Requests},
	}}
	return pod
}

// Pods of one revision have one copy of their containers, tolerations and amounts; others have their own.
func TestSharedParts(t *testing.T) {
	var shared stored.LeanPods
	c := corev1.Container{Name: "main", Image: "web:1", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")},
	}}
	pods := []*corev1.Pod{
		ofTemplate("1", c), ofTemplate("1", c), ofTemplate("2", c), ofTemplate("", c), ofTemplate("1", c), ofTemplate("1", c),
	}
	pods[4].Namespace = "another" // it claims the same owner
	for _, pod := range pods {
		shared.Pod(pod)
	}
	for i, want := range []bool{true, true, false, false, false, true} {
		one, other := &pods[0].Spec, &pods[i].Spec
		if got := &one.Containers[0] == &other.Containers[0]; got != want {
			t.Errorf("pod %d has the containers of the first: %t", i, got)
		}
		if got := &one.Tolerations[0] == &other.Tolerations[0]; got != want {
			t.Errorf("pod %d has the tolerations of the first: %t", i, got)
		}
		amounts := reflect.ValueOf(pods[i].Status.ContainerStatuses[0].Resources.Requests).Pointer()
		if amounts != reflect.ValueOf(other.Containers[0].Resources.Requests).Pointer() {
			t.Errorf("the status of pod %d has amounts of its own", i)
		}
	}
}

// A cache may pass a pod twice, while reconcilers read the pods that share its parts. The race detector sees a write.
func TestSharedTwice(t *testing.T) {
	var shared stored.LeanPods
	var base corev1.Container
	fill(reflect.ValueOf(&base).Elem())
	other := *base.DeepCopy()
	other.Image = "another"
	one, two := ofTemplate("1", base), ofTemplate("1", base)
	shared.Pod(one)
	shared.Pod(two)
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()

		for range 1000 {
			_ = one.DeepCopy()
		}
	}()
	for range 1000 {
		shared.Pod(two)
		shared.Pod(ofTemplate("1", other)) // so that the next time differs from the last pod
	}
	wait.Wait()
	if want := ofTemplate("1", base); one.Spec.Containers[0].Image != want.Spec.Containers[0].Image {
		t.Errorf("the container is %+v", one.Spec.Containers[0])
	}
}

// A pod of the same revision whose container differs in anything that is kept keeps its own: a sidecar or a resize may
// have changed it.
func TestSharedKeepsDifferences(t *testing.T) {
	var base corev1.Container
	fill(reflect.ValueOf(&base).Elem())
	base.Env[0].Name = kruise.ContainerLaunchPriorityEnvName
	leaves := 0
	visit(reflect.ValueOf(&base).Elem(), "", func(string, reflect.Value) { leaves++ })
	kept := 0
	for n := range leaves {
		changed, at, path := *base.DeepCopy(), 0, ""
		visit(reflect.ValueOf(&changed).Elem(), "", func(name string, leaf reflect.Value) {
			if at == n {
				path = name
				change(leaf)
			}
			at++
		})
		var shared stored.LeanPods
		one, two, want := ofTemplate("1", base), ofTemplate("1", changed), ofTemplate("1", changed)
		stored.LeanPod(want)
		shared.Pod(one)
		if shared.Pod(two); !equality.Semantic.DeepEqual(want, two) {
			t.Errorf("a difference of %s is lost", path)
		}
		if !equality.Semantic.DeepEqual(one.Spec.Containers, two.Spec.Containers) {
			kept++
		}
	}
	if kept < 15 {
		t.Errorf("%d of %d fields make a difference", kept, leaves)
	}
}

// fill sets each field.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[resource.Quantity]() {
			v.Set(reflect.ValueOf(resource.MustParse("1")))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	default:
		change(v)
	}
}

// visit calls a function for each leaf. Maps and quantities are leaves as a whole.
func visit(v reflect.Value, path string, leaf func(string, reflect.Value)) {
	quantity := reflect.TypeFor[resource.Quantity]()
	switch {
	case v.Type() == quantity:
		leaf(path, v)
	case v.Kind() == reflect.Pointer:
		visit(v.Elem(), path, leaf)
	case v.Kind() == reflect.Slice:
		visit(v.Index(0), path, leaf)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			visit(v.Field(i), path+"."+v.Type().Field(i).Name, leaf)
		}
	default:
		leaf(path, v)
	}
}

// change gives a leaf another value.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "a")
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint8:
		v.SetUint(v.Uint() + 1)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.ValueOf(resource.MustParse("2")))
		}
	case reflect.Struct:
		v.Set(reflect.ValueOf(resource.MustParse("2")))
	default:
		panic(v.Type())
	}
}

// The tables do not grow with the texts and the templates of a cluster, and do not keep large pods.
func TestSharedIsBounded(t *testing.T) {
	var shared stored.LeanPods
	for i := range 1 << 17 {
		shared.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(i)}})
	}
	for i := range 1 << 13 {
		shared.Pod(ofTemplate(fmt.Sprint(i), corev1.Container{}))
	}
	size := func(of *stored.LeanPods, table string) int {
		return reflect.ValueOf(of).Elem().FieldByName(table).Len()
	}
	if texts, templates := size(&shared, "seen"), size(&shared, "templates"); texts > 1<<16 || templates > 1<<12 {
		t.Errorf("%d texts and %d templates are kept", texts, templates)
	}
	var large stored.LeanPods
	large.Pod(ofTemplate("1", corev1.Container{Ports: make([]corev1.ContainerPort, 64)}))
	if size(&large, "templates") > 0 {
		t.Error("a large pod is kept")
	}
}

// What an event of a pod costs.
func BenchmarkShared(b *testing.B) {
	var list corev1.PodList
	objects.Recorded(b, "2-updating/pods.yaml", &list)
	var shared stored.LeanPods
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		shared.Pod(&list.Items[i%len(list.Items)])
	}
}

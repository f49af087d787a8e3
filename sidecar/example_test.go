package sidecar_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

// logAgent is a set for all pods with app=shop.
func logAgent() *v1beta1.SidecarSet {
	return &v1beta1.SidecarSet{
		ObjectMeta: metav1.ObjectMeta{Name: "log-agent"},
		Spec: v1beta1.SidecarSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
			Containers: []v1beta1.SidecarContainer{{
				Container:         corev1.Container{Name: "agent", Image: "agent:2"},
				PodInjectPolicy:   v1beta1.BeforeAppContainerType,
				ShareVolumePolicy: v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumePolicyEnabled},
			}},
		},
	}
}

func shopPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "shop:1", VolumeMounts: []corev1.VolumeMount{{Name: "logs", MountPath: "/logs"}},
			}},
			Volumes: []corev1.Volume{{Name: "logs"}},
		},
	}
}

// read is what a program does once for each set, and not for each pod.
func read(sets ...*v1beta1.SidecarSet) []*sidecar.Set {
	var all []*sidecar.Set
	for _, set := range sets {
		s, err := sidecar.Parse(set)
		if err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	return all
}

func ExampleInject() {
	injection, err := sidecar.Inject(shopPod(), read(logAgent()), sidecar.Options{Now: time.Now()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range injection.Pod.Spec.Containers {
		fmt.Println(c.Name, c.VolumeMounts[0].MountPath)
	}
	fmt.Println(injection.Pod.Annotations["kruise.io/sidecarset-injected-list"])
	// Output:
	// agent /logs
	// main /logs
	// log-agent
}

func ExampleSelect() {
	other, paused := logAgent(), logAgent()
	other.Name, other.Spec.Selector.MatchLabels["app"] = "mesh", "bank"
	paused.Name, paused.Spec.InjectionStrategy.Paused = "probe", true

	selection, err := sidecar.Select(shopPod(), &corev1.Namespace{}, read(other, paused, logAgent()))
	for _, set := range selection.Sets {
		fmt.Println(set.Name())
	}
	for _, note := range selection.Notes {
		fmt.Println(note.Object, note.Text)
	}
	fmt.Println(err)
	// Output:
	// log-agent
	// probe injection is paused
	// <nil>
}

func ExampleMatchesPod() {
	fmt.Println(sidecar.MatchesPod(logAgent(), shopPod()))
	// Output: true <nil>
}

func ExampleMatchesNamespace() {
	set := logAgent()
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	fmt.Println(sidecar.MatchesNamespace(set,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "red"}}}))
	// Output: false <nil>
}

func ExampleNamespaces() {
	set := logAgent()
	fmt.Println(sidecar.Namespaces(set) == nil)
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
		"kubernetes.io/metadata.name": "shop",
	}}
	fmt.Println(sidecar.Namespaces(set))
	// Output:
	// true
	// [shop]
}

func ExampleResolve() {
	set := logAgent()
	set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: ptr.To("stable")}
	former := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "log-agent-1", Labels: map[string]string{
			v1beta1.SidecarSetNameLabel: "log-agent", v1beta1.SidecarSetCustomVersionLabel: "stable",
		}},
		Revision: 1,
		Data: runtime.RawExtension{
			Raw: []byte(`{"spec":{"$patch":"replace","containers":[{"name":"agent","image":"agent:1"}]}}`),
		},
	}
	resolved, err := sidecar.Resolve(read(set)[0], shopPod(), []*appsv1.ControllerRevision{former}, 0)
	fmt.Println(resolved.Object().Spec.Containers[0].Image, resolved.Object().Status.LatestRevision, err)
	// Output: agent:1 log-agent-1 <nil>
}

func ExampleParse() {
	set := logAgent()
	set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}
	read, err := sidecar.Parse(set)
	fmt.Println(err)

	// It does no harm to the pods of others.
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "bank"}}}
	selection, err := sidecar.Select(other, nil, []*sidecar.Set{read})
	fmt.Println(len(selection.Sets), err)
	// Output:
	// sidecarset log-agent: spec.selector: "Like" is not a valid label selector operator
	// 0 <nil>
}

func ExampleFormer() {
	former, err := sidecar.Former(read(logAgent())[0], nil)
	fmt.Println(former == nil, err)
	// Output: true <nil>
}

func ExampleRestore() {
	former := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "log-agent-1"},
		Data: runtime.RawExtension{
			Raw: []byte(`{"spec":{"$patch":"replace","containers":[{"name":"agent","image":"agent:1"}]}}`),
		},
	}
	restored, err := sidecar.Restore(read(logAgent())[0], former)
	fmt.Println(restored.Object().Spec.Containers[0].Image, err)
	// Output: agent:1 <nil>
}

func ExampleHash() {
	now, next := logAgent(), logAgent()
	next.Spec.Containers[0].Image = "agent:3"
	a, _ := sidecar.Hash(now)
	b, _ := sidecar.Hash(next)
	fmt.Println(a == b)
	// Output: false
}

func ExampleHashWithoutImage() {
	now, next := logAgent(), logAgent()
	next.Spec.Containers[0].Image = "agent:3"
	a, _ := sidecar.HashWithoutImage(now)
	b, _ := sidecar.HashWithoutImage(next)
	fmt.Println(a == b)
	// Output: true
}

func ExampleHotUpgradeNames() {
	fmt.Println(sidecar.HotUpgradeNames("mesh"))
	// Output: mesh-1 mesh-2
}

func ExampleContainerNames() {
	c := logAgent().Spec.Containers[0]
	fmt.Println(sidecar.ContainerNames(&c, false))
	c.UpgradeStrategy.UpgradeType = v1beta1.SidecarContainerHotUpgrade
	fmt.Println(sidecar.ContainerNames(&c, false))
	// Output:
	// [agent]
	// [agent-1 agent-2]
}

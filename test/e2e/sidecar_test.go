//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// meshed is a Deployment with pods that a SidecarSet selects.
type meshed struct {
	*deployed
	namespace string
	set       *v1beta1.SidecarSet
	was       map[string]*corev1.Pod
}

// page is the image of an application that serves its name.
func (m *deployed) page(t *testing.T, name string) image.Image {
	t.Helper()
	return m.Push(t, image.Spec{
		Name: "sidecars/nginx:" + name, Files: map[string][]byte{"/usr/share/nginx/html/index.html": []byte(name)},
	})
}

// newMeshed makes a set, waits until new pods get it, and makes them.
func (m *deployed) newMeshed(t *testing.T, replicas int32, change func(*v1beta1.SidecarSet)) *meshed {
	t.Helper()
	s := &meshed{deployed: m, namespace: m.Namespace(t)}
	labels := map[string]string{"mesh": s.namespace}
	s.set = &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.set.Spec = v1beta1.SidecarSetSpec{
		Selector:          &metav1.LabelSelector{MatchLabels: labels},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
	}
	change(s.set)
	m.install(t, s.set)
	main := m.page(t, "application")
	plain := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	plain.Spec = appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To(int64(3)),
				Containers:                    []corev1.Container{{Name: "main", Image: main.Name}},
			},
		},
	}
	if err := m.Client.Create(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, "ready pods", func(pods map[string]*corev1.Pod) error {
		return s.status(t, replicas, replicas, replicas)
	})
	s.was = s.pods(t)
	return s
}

// install creates a set, removes it with the test, and waits until pods that it selects get it.
func (m *deployed) install(t *testing.T, set *v1beta1.SidecarSet) {
	t.Helper()
	begin := time.Now()
	if err := m.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Client.Delete(context.Background(), set); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete set %s: %v", set.Name, err)
		}
	})
	namespace := set.Spec.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]
	eventually(t, func(ctx context.Context) error {
		pod := held(namespace, "probe", set.Spec.Selector.MatchLabels)
		if err := m.Client.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if list := pod.Annotations[kruise.SidecarSetInjectedListKey]; list != set.Name {
			return fmt.Errorf("a pod gets %q", list)
		}
		return nil
	})
	t.Logf("pods get the set %s after its creation", time.Since(begin).Round(time.Millisecond))
}

// held is a pod that is not scheduled.
func held(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "tests.kruisekit.dev/held"}},
			Containers:      []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
}

// pods are those that are not being deleted, by name.
func (s *meshed) pods(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.namespace),
		client.MatchingLabels{"mesh": s.namespace}); err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods
}

func (s *meshed) waitFor(t *testing.T, what string, check func(map[string]*corev1.Pod) error) {
	t.Helper()
	t.Log("waiting for", what)
	eventually(t, func(context.Context) error { return check(s.pods(t)) })
}

// change writes what it changes in the live set, and nothing else.
func (s *meshed) change(t *testing.T, change func(*v1beta1.SidecarSetSpec)) {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(s.set), s.set); err != nil {
		t.Fatal(err)
	}
	before := client.MergeFrom(s.set.DeepCopy())
	change(&s.set.Spec)
	if err := s.Client.Patch(t.Context(), s.set, before); err != nil {
		t.Fatal(err)
	}
}

// status says what keeps the set from telling so many pods.
func (s *meshed) status(t *testing.T, matched, updated, ready int32) error {
	t.Helper()
	var set v1beta1.SidecarSet
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(s.set), &set); err != nil {
		return err
	}
	now := set.Status
	if now.ObservedGeneration != set.Generation || now.MatchedPods != matched || now.UpdatedPods != updated ||
		now.ReadyPods != ready {
		return fmt.Errorf("status of generation %d is %+v, want %d matched, %d updated, %d ready",
			set.Generation, now, matched, updated, ready)
	}
	return nil
}

// kept compares pods with those of before: the same, with so many restarts of each container.
func (s *meshed) kept(t *testing.T, restarts map[string]int32) {
	t.Helper()
	now := s.pods(t)
	if len(now) != len(s.was) {
		t.Errorf("there are %d pods, there were %d", len(now), len(s.was))
	}
	for name, was := range s.was {
		is := now[name]
		if is == nil || is.UID != was.UID || is.Status.PodIP != was.Status.PodIP {
			t.Errorf("%s is another pod, or gone", name)
			continue
		}
		for container, status := range statuses(is) {
			if status.RestartCount != restarts[container] {
				t.Errorf("%s: %s restarted %d times, want %d", name, container, status.RestartCount, restarts[container])
			}
		}
	}
}

// get reads a pod.
func (m *deployed) get(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := m.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// What docs/sidecar.md tells to type does what it says there.
func (m *deployed) testSidecarDocument(t *testing.T) {
	for _, tag := range []string{"1.27", "1.28"} {
		m.Push(t, image.Spec{Name: "nginx:" + tag, Files: map[string][]byte{"/usr/share/nginx/html/index.html": []byte(tag)}})
	}
	namespace := m.Namespace(t)
	var said []string
	for _, words := range typed(t, "../../docs/sidecar.md") {
		line := strings.Join(words, " ")
		if words[0] == "wait" {
			words = append(words, "--timeout="+timeout.String())
		}
		if words[0] == "delete" {
			words = append(words, "--wait=false")
		}
		if strings.Contains(line, "deployment.yaml") {
			// People type slower than that.
			eventually(t, func(ctx context.Context) error {
				pod := held(namespace, "probe", map[string]string{"app": "shop"})
				if err := m.Client.Create(ctx, pod, client.DryRunAll); err != nil ||
					pod.Annotations[kruise.SidecarSetInjectedListKey] == "" {
					return fmt.Errorf("a pod gets no sidecar: %w", err)
				}
				return nil
			})
		}
		got, err := m.Kubectl(t.Context(), append(words, "-n", namespace)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, got)
		}
		said = append(said, "$ kubectl "+line+"\n"+got)
	}
	all := strings.Join(said, "")
	t.Log(all)
	for what, n := range map[string]int{"log,nginx": 8, "1,0 ": 4} {
		if got := strings.Count(all, what); got != n {
			t.Errorf("%q is said %d times, want %d", what, got, n)
		}
	}
}

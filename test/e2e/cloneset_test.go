//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// newScheme knows the core kinds and both versions of CloneSet.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, policyv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// theSet is a CloneSet that the deployed manager leads, with its pods.
type theSet struct {
	*deployed
	namespace, name string
	images          map[string]image.Image
}

// newSet makes the images that its tests use, under their own names: old and new for what changes, helper beside them.
func (m *deployed) newSet(t *testing.T, name string) *theSet {
	t.Helper()
	s := &theSet{deployed: m, namespace: m.Namespace(t), name: name, images: map[string]image.Image{}}
	for _, tag := range []string{"old", "new", "helper"} {
		s.images[tag] = m.Push(t, image.Spec{
			Name:  "cloneset/nginx:" + tag,
			Files: map[string][]byte{"/usr/share/nginx/html/index.html": []byte(tag)},
		})
	}
	return s
}

// create makes it, of two containers, updated in place one by one, and waits until its pods are ready.
func (s *theSet) create(t *testing.T, replicas int32, change func(*v1beta1.CloneSetSpec)) {
	t.Helper()
	labels := map[string]string{"app": s.name}
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}}
	set.Spec = v1beta1.CloneSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To(int64(1)),
				Containers: []corev1.Container{
					{Name: "main", Image: s.images["old"].Name},
					{Name: "helper", Image: s.images["helper"].Name, Command: []string{"sleep", "100000"}},
				},
			},
		},
	}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
		MaxUnavailable:  ptr.To(intstr.FromInt32(1)),
	}
	if change != nil {
		change(&set.Spec)
	}
	if err := s.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, "ready pods", s.all("old", 0))
}

// change writes what it changes in the live object, and nothing else.
func (s *theSet) change(t *testing.T, change func(*v1beta1.CloneSetSpec)) {
	t.Helper()
	set := s.live(t)
	before := client.MergeFrom(set.DeepCopy())
	change(&set.Spec)
	if err := s.Client.Patch(t.Context(), set, before); err != nil {
		t.Fatal(err)
	}
}

// roll gives the main container the new image.
func (s *theSet) roll(t *testing.T) {
	t.Helper()
	s.change(t, func(spec *v1beta1.CloneSetSpec) { spec.Template.Spec.Containers[0].Image = s.images["new"].Name })
}

func (s *theSet) live(t *testing.T) *v1beta1.CloneSet {
	t.Helper()
	set := &v1beta1.CloneSet{}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: s.name}, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// pods are those that are not being deleted, by name.
func (s *theSet) pods(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.namespace),
		client.MatchingLabels{"app": s.name}); err != nil {
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

// look is what a test finds at one moment. The set is read first: what it tells is no newer than the pods.
type look struct {
	set  *v1beta1.CloneSet
	pods map[string]*corev1.Pod
}

func (s *theSet) look(t *testing.T) look {
	t.Helper()
	set := s.live(t)
	return look{set, s.pods(t)}
}

func (s *theSet) waitFor(t *testing.T, what string, check func(look) error) {
	t.Helper()
	t.Log("waiting for", what)
	eventually(t, func(context.Context) error { return check(s.look(t)) })
}

// all says what keeps the set from having settled with all of its pods ready, running the image, after so many restarts
// of the main container and none of the other.
func (s *theSet) all(tag string, restarts int32) func(look) error {
	return func(l look) error {
		replicas := *l.set.Spec.Replicas
		switch now := l.set.Status; {
		case now.ObservedGeneration != l.set.Generation:
			return fmt.Errorf("generation %d is not yet seen", l.set.Generation)
		case now.Replicas != replicas || now.UpdatedReadyReplicas != replicas || now.UpdatedAvailableReplicas != replicas ||
			now.CurrentRevision != now.UpdateRevision:
			return fmt.Errorf("status is %+v", now)
		case len(l.pods) != int(replicas):
			return fmt.Errorf("there are %v", slices.Collect(maps.Keys(l.pods)))
		}
		for name, pod := range l.pods {
			if err := s.one(pod, tag, restarts); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
}

// one says what keeps a pod from being ready with the image.
func (s *theSet) one(pod *corev1.Pod, tag string, restarts int32) error {
	main, helper := statuses(pod)["main"], statuses(pod)["helper"]
	if !runs(main, s.images[tag]) || main.RestartCount != restarts || helper.RestartCount != 0 {
		return fmt.Errorf("main runs %s after %d restarts, and the helper restarted %d times; want %s after %d, and 0",
			main.ImageID, main.RestartCount, helper.RestartCount, s.images[tag].Name, restarts)
	}
	if state := pod.Labels[kruise.LifecycleStateKey]; !ready(pod) || state != string(kruise.LifecycleStateNormal) {
		return fmt.Errorf("it is in state %q, with %v", state, pod.Status.Conditions)
	}
	return nil
}

// sameButFor compares pods of before and after an update in place: the container that changed, and no other, is a new
// one.
func sameButFor(t *testing.T, changed string, before, after map[string]*corev1.Pod) {
	t.Helper()
	for name, was := range before {
		is := after[name]
		if is == nil {
			t.Errorf("%s is gone", name)
			continue
		}
		if is.UID != was.UID || is.Status.PodIP != was.Status.PodIP || is.Spec.NodeName != was.Spec.NodeName {
			t.Errorf("%s was %s at %s on %s, and is %s at %s on %s", name, was.UID, was.Status.PodIP, was.Spec.NodeName,
				is.UID, is.Status.PodIP, is.Spec.NodeName)
		}
		for container, status := range statuses(was) {
			if now := statuses(is)[container]; (now.ContainerID == status.ContainerID) == (container == changed) {
				t.Errorf("%s: container %s was %s and is %s", name, container, status.ContainerID, now.ContainerID)
			}
		}
	}
}

// serving counts the pods that are ready.
func serving(pods map[string]*corev1.Pod) int {
	n := 0
	for _, pod := range pods {
		if ready(pod) {
			n++
		}
	}
	return n
}

// running counts the pods whose main container runs the image.
func (s *theSet) running(pods map[string]*corev1.Pod, tag string) int {
	n := 0
	for _, pod := range pods {
		if runs(statuses(pod)["main"], s.images[tag]) {
			n++
		}
	}
	return n
}

// sh runs a command in a container and gives what it says.
func (s *theSet) sh(t *testing.T, pod, container, command string) string {
	t.Helper()
	said, err := s.Kubectl(t.Context(), "exec", "-n", s.namespace, pod, "-c", container, "--", "sh", "-c", command)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(said)
}

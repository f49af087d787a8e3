//go:build envtest

package cloneset_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/revision"
)

// OnDelete replaces what the user deletes, and when it scales in, old pods go first.
func TestOnDeleteThroughScaling(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 5, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType
		s.Spec.MinReadySeconds = 1
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	b.eventually(set, all(settled, reason("CloneSetAvailable")))
	b.change(set, image("web:2"))
	b.stays(set, all(counts(5, 5), images(map[string]int{"web:1": 5}), reason("CloneSetUpdated")))
	if set.Status.UpdatedReplicas != 0 {
		t.Errorf("status %+v", set.Status)
	}
	b.delete(b.pods(set)[:2]...)
	b.eventually(set, all(counts(5, 5), images(map[string]int{"web:1": 3, "web:2": 2})))
	b.scale(set, 3)
	b.eventually(set, all(counts(3, 3), images(map[string]int{"web:1": 1, "web:2": 2})))
	b.scale(set, 6)
	b.eventually(set, all(counts(6, 6), images(map[string]int{"web:1": 1, "web:2": 5})))
	b.scale(set, 5)
	b.eventually(set, all(counts(5, 5), images(map[string]int{"web:2": 5}), reason("CloneSetAvailable")))
}

func (b *bench) scale(set *v1beta1.CloneSet, replicas int32) {
	b.Helper()
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = &replicas })
}

// Of a few pods with OnDelete a chosen one goes, although a fifth of them is less than one.
func TestOnDeleteOfAChosenPod(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 2, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType })
	b.eventually(set, settled)
	chosen := b.pods(set)[0]
	b.patch(&chosen, fmt.Sprintf(`{"labels":{%q:""}}`, pub.SpecifiedDeleteKey))
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if uids(pods)[string(chosen.UID)] {
			return fmt.Errorf("%s is still there", chosen.Name)
		}
		return settled(set, pods)
	})
}

// To be recreated, one pod is marked, and it is deleted in another pass; here it cannot be deleted, and so no other is marked.
func TestRecreateMarksFirst(t *testing.T) {
	b := startWith(t, cloneset.Options{}, func(c client.WithWatch) client.Client {
		return interceptor.NewClient(c, interceptor.Funcs{
			Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
				return fmt.Errorf("%s cannot be deleted now", o.GetName())
			},
		})
	})
	set := b.create("web", 5, nil)
	b.eventually(set, settled)
	b.change(set, image("web:2"))
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if text := condition(set, v1beta1.CloneSetConditionFailedScale); !strings.Contains(text, "cannot be deleted now") {
			return fmt.Errorf("condition %q", text)
		}
		return b.told(set, "FailedDelete")
	})
	marked := 0
	for _, pod := range b.pods(set) {
		if _, ok := pod.Labels[pub.SpecifiedDeleteKey]; ok {
			marked++
		}
	}
	if n := len(b.events(set, "SuccessfulUpdatePodReCreate")); marked != 1 || n != 1 || len(b.pods(set)) != 5 {
		t.Errorf("%d of %d pods are marked, which was told %d times", marked, len(b.pods(set)), n)
	}
}

// What an update in place writes, and what is no update in place.
func TestInPlaceIfPossible(t *testing.T) {
	cases := map[string]struct {
		why     string
		options cloneset.Options
		change  func(*corev1.PodTemplateSpec)
		anew    bool
	}{
		"image":               {"the pod stays", cloneset.Options{}, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "web:2" }, false},
		"image, short hashes": {"the pod stays", cloneset.Options{ShortHash: true}, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "web:2" }, false},
		"env":                 {"nothing sets it in a running container", cloneset.Options{}, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }, true},
		"resources of another class": {"the class of a pod is fixed", cloneset.Options{Resize: true}, func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
		}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, c.options)
			set := b.create("web", 1, inPlace)
			b.eventually(set, settled)
			before := b.pods(set)[0]
			b.change(set, func(s *v1beta1.CloneSet) { c.change(&s.Spec.Template) })
			b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if set.Status.UpdateRevision == before.Labels[pub.PodRevisionLabelKey] {
					return fmt.Errorf("status %+v", set.Status)
				}
				return settled(set, pods)
			})
			now := b.pods(set)[0]
			if (now.UID != before.UID) != c.anew {
				t.Fatalf("%s: %s became %s", c.why, before.Name, now.Name)
			}
			want, short := set.Status.UpdateRevision, revision.Short(set.Status.UpdateRevision)
			if c.options.ShortHash {
				want = short
			}
			if now.Labels[pub.PodRevisionLabelKey] != want || now.Labels[pub.PodTemplateHashLabelKey] != short {
				t.Errorf("labels %v, want %s and %s", now.Labels, want, short)
			}
			if state := now.Annotations[pub.InPlaceUpdateStateKey]; !c.anew && !strings.Contains(state, `"lastContainerStatuses":{"web":{"imageID":"sha256:web-1"`) {
				t.Errorf("the state does not tell the old image: %s", state)
			}
			if n := len(b.events(set, "SuccessfulUpdatePodReCreate")); (n == 1) != c.anew {
				t.Errorf("told %d times", n)
			}
		})
	}
}

// InPlaceOnly recreates nothing: what cannot be is told once, and left alone.
func TestInPlaceOnlyIsImpossible(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	})
	b.eventually(set, settled)
	before := uids(b.pods(set))
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	})
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if text := condition(set, v1beta1.CloneSetConditionFailedUpdate); !strings.Contains(text, "can only be updated in place") {
			return fmt.Errorf("condition %q", text)
		}
		return b.told(set, "FailedUpdatePodInPlace")
	})
	b.calm(0)
	if told := b.events(set, "FailedUpdatePodInPlace"); len(told) != 1 || told[0].Count != 1 {
		t.Errorf("told %+v", told)
	}
	if after := uids(b.pods(set)); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("pods %v became %v", before, after)
	}
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Env = nil })
	b.eventually(set, settled)
	if text := condition(set, v1beta1.CloneSetConditionFailedUpdate); text != "" {
		t.Errorf("the condition stays: %s", text)
	}
}

// An older revision that lacks all annotations becomes the newest one, with what it lacked.
func TestBareRevisionIsRaised(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		withClaims(s)
	})
	b.eventually(set, settled)
	first := &appsv1.ControllerRevision{}
	first.Namespace, first.Name = b.namespace, set.Status.UpdateRevision
	b.change(set, image("web:2"))
	b.eventually(set, all(settled, images(map[string]int{"web:2": 1})))
	bare := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`))
	if err := b.client.Patch(t.Context(), first, bare); err != nil {
		t.Fatal(err)
	}
	b.change(set, image("web:1"))
	b.eventually(set, all(settled, images(map[string]int{"web:1": 1})))
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(first), first); err != nil {
		t.Fatal(err)
	}
	if first.Revision != 3 || first.Annotations[pub.CloneSetVolumeClaimTemplateHashKey] == "" || set.Status.UpdateRevision != first.Name {
		t.Errorf("revision %d of %s, annotations %v", first.Revision, first.Name, first.Annotations)
	}
}

// A pod in the network of its host has the port of its container there.
func TestHostPorts(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.HostNetwork = true
		s.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
	})
	b.eventually(set, settled)
	if port := b.pods(set)[0].Spec.Containers[0].Ports[0]; port.HostPort != 8080 {
		t.Errorf("port %+v", port)
	}
	b.stays(set, settled) // that the API server adds the port makes no new revision
}

// The limit of updates holds over a whole rollout, whatever is the matter with the pods.
func TestRolloutKeepsItsBudget(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 6, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.MinReadySeconds = 1
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(2))
	})
	b.eventually(set, settled)
	sick := b.pods(set)[0]
	b.patch(&sick, fmt.Sprintf(`{"annotations":{%q:""}}`, unready))
	b.eventually(set, counts(6, 5))
	b.change(set, image("web:2"))
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		down := 0
		for i := range pods {
			ready, since := false, time.Time{}
			for _, c := range pods[i].Status.Conditions {
				if c.Type == corev1.PodReady {
					ready, since = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
				}
			}
			// Times have no fractions of seconds: a pod is surely not available only in its first second.
			if !ready || time.Since(since) < 0 {
				down++
			}
		}
		if down > 2 {
			t.Fatalf("%d pods are not ready", down)
		}
		if n := running(pods, "web:2"); n != 6 {
			return fmt.Errorf("%d pods run the new image, status %+v", n, set.Status)
		}
		return nil
	})
	b.patch(&sick, fmt.Sprintf(`{"annotations":{%q:null}}`, unready))
	b.eventually(set, settled)
}

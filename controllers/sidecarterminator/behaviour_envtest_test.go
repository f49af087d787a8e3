//go:build envtest

package sidecarterminator_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// A request is made once the main container has finished, as the reference makes it, and an event tells of it once.
func TestRequest(t *testing.T) {
	b := start(t)
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill})
	b.Still()
	if b.request(pod) != nil || len(b.Asked()) > 0 {
		t.Error("it does not wait for the main container")
	}
	b.end(pod, 1, "app")
	r := b.asks(pod, "s1")
	want := v1beta1.ContainerRecreateRequestSpec{
		PodName: "job", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "s1"}},
		Strategy: &v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true, FailurePolicy: "Ignore"},
	}
	if diff := cmp.Diff(want, r.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	owner := []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: "job", UID: pod.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	if diff := cmp.Diff(owner, r.OwnerReferences); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 3 {
		b.Status(pod, func(pod *corev1.Pod) { pod.Status.Message = fmt.Sprint(i) })
	}
	b.Still()
	if diff := cmp.Diff([]string{"POST containerrecreaterequests 201"}, b.Asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.tells(pod, "The others have finished: stopping sidecars s1 by ContainerRecreateRequest "+r.Name+" (1)")
	if err := b.Look(pod); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the phase is %s: %v", pod.Status.Phase, err)
	}
	b.end(pod, 0, "s1")
	b.Still()
	if all := b.Asked(); len(all) > 0 {
		t.Errorf("all have ended, and it asks %q", all)
	}
}

// tells waits for the events of a pod.
func (b *bench) tells(pod *corev1.Pod, want ...string) {
	b.Helper()
	b.Until(func() error {
		if diff := cmp.Diff(want, b.Events(pod, "SidecarTerminator")); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestWhoIsStopped(t *testing.T) {
	b := start(t)
	type sidecars = [][]string
	for name, c := range map[string]struct {
		why    string
		policy corev1.RestartPolicy
		parts  sidecars
		ended  []string
		code   int32
		want   []string
	}{
		"failed-again": {
			why:    "the main container starts again",
			policy: corev1.RestartPolicyOnFailure,
			parts:  sidecars{{kill}},
			ended:  []string{"app"},
			code:   1,
		},
		"succeeded": {
			why:    "the main container never starts again",
			policy: corev1.RestartPolicyOnFailure,
			parts:  sidecars{{kill}},
			ended:  []string{"app"},
			want:   []string{"s1"},
		},
		"two": {
			why:    "one request names all",
			policy: corev1.RestartPolicyOnFailure,
			parts:  sidecars{{kill}, {kill}},
			ended:  []string{"app"},
			want:   []string{"s1", "s2"},
		},
		"one-left": {
			why:    "what has ended needs no request",
			policy: corev1.RestartPolicyOnFailure,
			parts:  sidecars{{kill}, {kill}},
			ended:  []string{"app", "s1"},
			want:   []string{"s2"},
		},
		"one-main-left": {
			why:    "the other main container still needs it",
			policy: corev1.RestartPolicyOnFailure,
			parts:  sidecars{{kill}, {}},
			ended:  []string{"app"},
		},
		"first": {
			why:    "one whose exit code is ignored waits for the others",
			policy: corev1.RestartPolicyNever,
			parts:  sidecars{{kill}, {kill, ignore}, {kill}},
			ended:  []string{"app"},
			want:   []string{"s1", "s3"},
		},
		"always": {
			why:    "such a pod never completes",
			policy: corev1.RestartPolicyAlways,
			parts:  sidecars{{kill}},
			ended:  []string{"app"},
		},
		"image-only": {
			why:    "an image ends it on virtual nodes only",
			policy: corev1.RestartPolicyNever,
			parts:  sidecars{{image}},
			ended:  []string{"app"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := b.pod(name, c.policy, c.parts...)
			b.end(pod, c.code, c.ended...)
			if c.want != nil {
				b.asks(pod, c.want...)
				return
			}
			// What is asked for another pod after it has come round tells that this one has been looked at.
			next := b.pod(name+"-next", corev1.RestartPolicyNever, []string{kill})
			b.end(next, 0, "app")
			b.asks(next, "s1")
			if r := b.request(pod); r != nil {
				t.Errorf("%s: %+v", c.why, r.Spec)
			}
		})
	}
}

// Sidecars whose exit code does not count come last, after the phase of the pod is written; the request for the others,
// which never ends since none of its containers starts again, is replaced.
func TestIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		code int32
		want corev1.PodPhase
	}{
		"succeeded": {0, corev1.PodSucceeded},
		"failed":    {1, corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			pod := b.pod("job", corev1.RestartPolicyNever, []string{kill}, []string{kill, ignore})
			b.end(pod, c.code, "app")
			first := b.asks(pod, "s1")
			b.Still()
			b.Asked()
			b.end(pod, 137, "s1")
			last := b.asks(pod, "s2")
			if first.UID == last.UID {
				t.Error("it is the same request")
			}
			if err := b.Look(pod); err != nil {
				t.Fatal(err)
			}
			condition := lifecycle.ConditionOf(pod, kruise.SidecarTerminated)
			if pod.Status.Phase != c.want || condition == nil || condition.Status != corev1.ConditionTrue ||
				condition.Reason != "" || condition.Message != "Terminated by Sidecar Terminator" {
				t.Errorf("%s, %+v", pod.Status.Phase, condition)
			}
			b.Still()
			path := "containerrecreaterequests/" + last.Name
			want := []string{"PATCH pods/job/status 200", "DELETE " + path + " 200", "POST containerrecreaterequests 201"}
			if diff := cmp.Diff(want, b.Asked()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is asked for passes admission, also that for the last sidecars, when the pod has ended as far as its phase goes.
// The webhook itself is not here; it does what containerrestart.Admit says.
func TestAdmitted(t *testing.T) {
	b := newBench(t, nil)
	b.reconcile(sidecarterminator.Options{}, func(c client.WithWatch) client.Client { return admission{c, b} })
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill}, []string{kill, ignore})
	b.end(pod, 1, "app")
	b.asks(pod, "s1")
	b.end(pod, 0, "s1")
	r := b.asks(pod, "s2")
	if r.Labels[v1beta1.ContainerRecreateRequestPodUIDKey] != string(pod.UID) ||
		r.Spec.Containers[0].StatusContext == nil {
		t.Errorf("it was not admitted: %+v", r)
	}
}

// admission completes requests, or refuses them, from the pod as it is.
type admission struct {
	client.Client

	b *bench
}

func (a admission) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	r, is := o.(*request)
	if !is {
		return a.Client.Create(ctx, o, opts...)
	}
	pod, node := &corev1.Pod{}, &corev1.Node{}
	if err := a.b.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.PodName}, pod); err != nil {
		return err
	}
	if err := a.b.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		return err
	}
	admitted, faults := containerrestart.Admit(r, pod, node)
	if len(faults) > 0 {
		a.b.Errorf("refused: %v", faults.ToAggregate())
		return faults.ToAggregate()
	}
	if err := a.Client.Create(ctx, admitted, opts...); err != nil {
		return err
	}
	*r = *admitted
	return nil
}

// Without others to wait for, the phase is written at once, and the job waits no longer for that sidecar.
func TestIgnoredAlone(t *testing.T) {
	b := start(t)
	pod := b.pod("job", corev1.RestartPolicyNever, []string{kill, ignore})
	b.end(pod, 0, "app")
	b.asks(pod, "s1")
	b.Still()
	if err := b.Look(pod); err != nil || pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("%s, %v", pod.Status.Phase, err)
	}
	if diff := cmp.Diff([]string{"PATCH pods/job/status 200", "POST containerrecreaterequests 201"},
		b.Asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// On a virtual node sidecars get another image, once, and there is no request.
func TestVirtual(t *testing.T) {
	b := virtual(t)
	pod := b.pod("job", corev1.RestartPolicyOnFailure, []string{image}, []string{kill}, []string{image, kill, ignore})
	b.end(pod, 0, "app")
	b.Until(func() error {
		if err := b.Look(pod); err != nil {
			return err
		}
		var images []string
		for _, c := range pod.Spec.Containers {
			images = append(images, c.Image)
		}
		if diff := cmp.Diff([]string{"app:1", "exit:1", "sidecar:1", "exit:1"}, images); diff != "" {
			return fmt.Errorf("images (-want +got):\n%s", diff)
		}
		return nil
	})
	for i := range 3 {
		b.Status(pod, func(pod *corev1.Pod) { pod.Status.Message = fmt.Sprint(i) })
	}
	b.Still()
	if diff := cmp.Diff([]string{"PATCH pods/job 200"}, made(b.Asked())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.tells(pod, "The main containers have finished: sidecars s1, s3 get the image that ends them (1)")
	if r := b.request(pod); r != nil {
		t.Errorf("%+v", r.Spec)
	}
}

// made are the requests without those that came too late, because a client wrote in the same moment.
func made(all []string) []string {
	var some []string
	for _, one := range all {
		if one[len(one)-3:] != "409" {
			some = append(some, one)
		}
	}
	return some
}

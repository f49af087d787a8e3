package finish

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// namePrefix is followed by the UID of the pod.
	namePrefix = "sidecar-termination-"
	// leastPause and mostPause are between the end of a request that has not stopped a container and the next.
	leastPause = 10 * time.Second
	mostPause  = 5 * time.Minute
	// noNodePause is when to look for a missing node again.
	noNodePause = time.Minute
)

// RequestName returns the name of the request that stops the sidecars of a pod.
func RequestName(pod types.UID) string { return namePrefix + string(pod) }

// request requests that containers are stopped, unless a request is unfinished or has just failed.
func (d *decider) request(some []container) {
	var running []container
	for _, c := range some {
		switch {
		case c.terminated() != nil:
		case c.neverRan():
			d.note(note.Waiting, "SidecarNeverRan", c.spec.Name, "has never started, so that there is nothing to stop")
		default:
			running = append(running, c)
		}
	}
	if r := d.Request; r != nil {
		running = d.replace(r, running)
	}
	if len(running) == 0 {
		return
	}
	if d.Request != nil {
		d.action.Writes = append(d.action.Writes, &write.Write{Verb: write.Delete, Object: d.Request})
	}
	request := newRequest(d.Pod, names(running))
	d.action.Writes = append(d.action.Writes, &write.Write{Verb: write.Create, Object: request})
	d.action.Event = "The others have finished: stopping sidecars " + strings.Join(names(running), ", ") +
		" by ContainerRecreateRequest " + request.Name
}

// replace returns the containers that need another request than the existing one.
func (d *decider) replace(r *appsv1beta1.ContainerRecreateRequest, running []container) []container {
	over := r.Status.CompletionTime != nil || r.Status.Phase == appsv1beta1.ContainerRecreateRequestCompleted
	if r.DeletionTimestamp != nil {
		d.note(note.Waiting, "RequestUnderWay", r.Name, "waits until the request is gone")
		d.action.RequeueAfter = leastPause
		return nil
	}
	if !over && d.unended(r) {
		d.note(note.Waiting, "RequestUnderWay", r.Name, "waits for the request to stop containers")
		return nil
	}
	var wanted, again []container
	for _, c := range running {
		asked := requests(r, c.spec.Name)
		if asked && phaseIn(r, c.spec.Name) == appsv1beta1.ContainerRecreateRequestSucceeded {
			d.note(note.Info, "SidecarCameBack", c.spec.Name,
				"was stopped, and came back: it ended with an error, upon which the pod starts it again")
			continue
		}
		if asked {
			again = append(again, c)
		}
		wanted = append(wanted, c)
	}
	if len(again) == 0 {
		return wanted
	}
	if left := d.pause(r); left > 0 {
		d.note(note.Waiting, "RequestFailed", r.Name,
			"the request has not stopped "+strings.Join(names(again), ", ")+": "+r.Status.Message)
		d.action.RequeueAfter = left
		return nil
	}
	return wanted
}

// unended reports whether a request still has a container to stop.
func (d *decider) unended(r *appsv1beta1.ContainerRecreateRequest) bool {
	return slices.ContainsFunc(d.all, func(c container) bool { return requests(r, c.spec.Name) && c.terminated() == nil })
}

// pause returns how long the next request waits: as long again as since the main containers finished.
func (d *decider) pause(r *appsv1beta1.ContainerRecreateRequest) time.Duration {
	ended := cmp.Or(r.Status.CompletionTime, &r.CreationTimestamp).Time
	return min(max(ended.Sub(lastEnd(of(d.all, main))), leastPause), mostPause) - d.Now.Sub(ended)
}

func requests(r *appsv1beta1.ContainerRecreateRequest, name string) bool {
	return slices.ContainsFunc(r.Spec.Containers, func(c appsv1beta1.ContainerRecreateRequestContainer) bool {
		return c.Name == name
	})
}

func phaseIn(r *appsv1beta1.ContainerRecreateRequest, name string) appsv1beta1.ContainerRecreateRequestPhase {
	for _, s := range r.Status.ContainerRecreateStates {
		if s.Name == name {
			return s.Phase
		}
	}
	return ""
}

// newRequest returns a request that its pod owns. A container that cannot be stopped stops no other from being stopped.
func newRequest(pod *corev1.Pod, names []string) *appsv1beta1.ContainerRecreateRequest {
	r := &appsv1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: RequestName(pod.UID),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod")),
			},
		},
		Spec: appsv1beta1.ContainerRecreateRequestSpec{
			PodName: pod.Name,
			Strategy: &appsv1beta1.ContainerRecreateRequestStrategy{
				ForceRecreate: true, FailurePolicy: appsv1beta1.ContainerRecreateRequestFailurePolicyIgnore,
			},
		},
	}
	for _, name := range names {
		r.Spec.Containers = append(r.Spec.Containers, appsv1beta1.ContainerRecreateRequestContainer{Name: name})
	}
	return r
}

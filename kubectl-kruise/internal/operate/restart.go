package operate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/pub"
)

// Batch is what Next decides upon: the pods, and the requests of this run for them.
type Batch struct {
	Pods     []*corev1.Pod
	Requests map[string]*v1beta1.ContainerRecreateRequest // by the name of the pod
	// MaxUnavailable limits how many of the pods may be unavailable, those of this run included.
	MaxUnavailable intstr.IntOrString
	// Owners of the pods, and the budgets of the namespace.
	Owners  []*unstructured.Unstructured
	Budgets []*policyv1beta1.PodUnavailableBudget
	Now     time.Time
}

// Step is what to do next.
type Step struct {
	// Start are the pods whose containers restart now.
	Start []*corev1.Pod
	// Finished and Running count the pods of this run.
	Finished, Running int
	// Refused are the pods that a budget holds back, with its reason.
	Refused []string
	Done    bool
}

// Next returns the pods to restart now: those that are not ready first, since their restart costs nothing. A failed
// request ends the run.
func Next(b Batch) (Step, error) {
	var s Step
	var waiting []*corev1.Pod
	unavailable := 0
	for _, pod := range b.Pods {
		r := b.Requests[pod.Name]
		ready := podutils.IsPodReady(pod)
		switch {
		case pod.DeletionTimestamp != nil:
			unavailable++
			continue
		case r == nil:
			waiting = append(waiting, pod)
		case r.Status.Phase == v1beta1.ContainerRecreateRequestFailed || failed(r):
			return s, fmt.Errorf("restart containers of pod %s: %s", pod.Name, message(r))
		case r.Status.CompletionTime == nil || !ready:
			s.Running++
			unavailable++
			continue
		default:
			s.Finished++
		}
		if !ready {
			unavailable++
		}
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(&b.MaxUnavailable, len(b.Pods), false)
	if err != nil {
		return s, fmt.Errorf("read maxUnavailable: %w", err)
	}
	limit = max(limit, 1)
	slices.SortStableFunc(waiting, func(x, y *corev1.Pod) int { return rank(x) - rank(y) })
	for _, pod := range waiting {
		if podutils.IsPodReady(pod) {
			if unavailable >= limit {
				break
			}
			if why := b.refused(pod); why != "" {
				s.Refused = append(s.Refused, pod.Name+": "+why)
				continue
			}
			unavailable++
		}
		s.Start = append(s.Start, pod)
	}
	s.Done = len(waiting) == 0 && s.Running == 0
	return s, nil
}

func rank(pod *corev1.Pod) int {
	if podutils.IsPodReady(pod) {
		return 1
	}
	return 0
}

// refused returns why a budget holds a pod back.
func (b Batch) refused(pod *corev1.Pod) string {
	all := make([]pub.Budget, 0, len(b.Budgets))
	for _, budget := range b.Budgets {
		read, _ := pub.Read(budget)
		all = append(all, read)
	}
	budget := pub.Match(pod, explain.Chain(b.Owners), all)
	if budget == nil {
		return ""
	}
	verdict := pub.Review(*budget, pub.Disruption{Pod: pod, Operation: pub.Update}, b.Now)
	if verdict.Allowed {
		return ""
	}
	return fmt.Sprintf("PodUnavailableBudget %s: %s", budget.Name, verdict.Reason)
}

// failed reports whether a completed request left a container as it was.
func failed(r *v1beta1.ContainerRecreateRequest) bool {
	return slices.ContainsFunc(r.Status.ContainerRecreateStates,
		func(c v1beta1.ContainerRecreateRequestContainerRecreateState) bool {
			return c.Phase == v1beta1.ContainerRecreateRequestFailed
		})
}

func message(r *v1beta1.ContainerRecreateRequest) string {
	texts := []string{r.Status.Message}
	for _, c := range r.Status.ContainerRecreateStates {
		if c.Message != "" {
			texts = append(texts, c.Name+": "+c.Message)
		}
	}
	return strings.TrimSpace(strings.Join(texts, " "))
}

// errNoPods ends a run without pods.
var errNoPods = errors.New("no pods to restart")

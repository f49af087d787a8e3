package operate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/pub"
)

// Batch is the input of Next: the selected pods, and the ContainerRecreateRequests that this run created for them.
type Batch struct {
	Pods     []*corev1.Pod
	Requests map[string]*v1beta1.ContainerRecreateRequest // by the name of the pod
	// MaxUnavailable limits how many of Pods may be unavailable, restarting pods included: a number, or a percentage
	// of Pods rounded down, at least 1.
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

// Next returns the pods to restart now. It starts all pods that are not ready, whatever MaxUnavailable and the budgets
// say: their restart makes no pod unavailable. Ready pods follow within the limits. Next returns an error if a request
// of this run failed.
func Next(b Batch) (Step, error) {
	var s Step
	var waiting []*corev1.Pod
	budgets := b.budgets()
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
			budgets.spend(pod) // it has started, so a refusal is ignored; the status may still count it as available
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
			if refusal := budgets.spend(pod); refusal != "" {
				s.Refused = append(s.Refused, pod.Name+": "+refusal)
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

// budgets holds the PodUnavailableBudgets of a namespace. spend lowers their unavailableAllowed for each restart.
type budgets struct {
	all   []pub.Budget
	chain pub.Chain
	now   time.Time
}

// budgets converts the budgets. The status of a budget may lag behind the pods: unavailableAllowed is reduced by the
// unavailable pods that the status does not count yet.
func (b Batch) budgets() budgets {
	r := budgets{all: make([]pub.Budget, len(b.Budgets)), chain: explain.Chain(b.Owners), now: b.Now}
	for i, budget := range b.Budgets {
		r.all[i], _ = pub.Read(budget)
	}
	unavailable := map[string]sets.Set[string]{} // pods, or groups of pods where the budget counts these
	for _, pod := range b.Pods {
		if budget := pub.Match(pod, r.chain, r.all); budget != nil && !pub.Available(pod, pub.Policy{}) {
			if unavailable[budget.Name] == nil {
				unavailable[budget.Name] = sets.Set[string]{}
			}
			unavailable[budget.Name].Insert(cmp.Or(budget.GroupOf(pod), pod.Name))
		}
	}
	for i := range r.all {
		s := &r.all[i].Status
		s.UnavailableAllowed -= max(int32(len(unavailable[r.all[i].Name]))-max(s.TotalReplicas-s.CurrentAvailable, 0), 0)
	}
	return r
}

// spend takes one disruption from the budget of a pod. It returns why the budget refuses the restart, or "" if the
// budget allows the restart or the pod has no budget.
func (r budgets) spend(pod *corev1.Pod) string {
	budget := pub.Match(pod, r.chain, r.all)
	if budget == nil {
		return ""
	}
	verdict := pub.Review(*budget, pub.Disruption{Pod: pod, Operation: pub.Update}, r.now)
	if verdict.Record != nil {
		*budget = budget.Spend(*verdict.Record)
	}
	if verdict.Allowed {
		return ""
	}
	return fmt.Sprintf("PodUnavailableBudget %s: %s", budget.Name, verdict.Reason)
}

// failed reports whether a request failed to recreate one of its containers.
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

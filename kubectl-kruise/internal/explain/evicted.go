package explain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/pub"
)

// Chain returns the owners of a pod as budgets name them, the controller of the pod first.
func Chain(owners []*unstructured.Unstructured) pub.Chain {
	var chain pub.Chain
	for _, o := range owners {
		kind := o.GroupVersionKind()
		chain = append(chain, pub.Target{Group: kind.Group, Kind: kind.Kind, Name: o.GetName()})
	}
	return chain
}

// Eviction returns what budgets say to an eviction of a pod now.
func Eviction(in Input, now time.Time) []string {
	var lines []string
	pod := in.Pod
	if b := pub.Match(pod, Chain(in.Owners), budgetsOf(in.Budgets)); b != nil {
		verdict := pub.Review(*b, pub.Disruption{Pod: pod, Operation: pub.Evict}, now)
		more := "more"
		if b.Groups != nil {
			more = "more groups"
		}
		line := fmt.Sprintf("PodUnavailableBudget %s: %d %s may be unavailable, an eviction now is ", b.Name,
			b.Status.UnavailableAllowed, more)
		if verdict.Allowed {
			line += "admitted: " + string(verdict.Reason)
		} else {
			line += fmt.Sprintf("refused: %s %s", verdict.Reason, verdict.Text)
		}
		lines = append(lines, line)
	}
	for _, b := range in.DisruptionBudgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		lines = append(lines,
			fmt.Sprintf("PodDisruptionBudget %s: %d disruptions allowed", b.Name, b.Status.DisruptionsAllowed))
	}
	for _, o := range append([]*unstructured.Unstructured{asObject(pod)}, in.Owners...) {
		if value := o.GetLabels()[kruise.DeletionProtectionKey]; value != "" {
			lines = append(lines, fmt.Sprintf("%s %s is protected from deletion: %s", o.GetKind(), o.GetName(), value))
		}
	}
	return lines
}

// asObject returns the kind, the name and the labels of a pod.
func asObject(pod *corev1.Pod) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	o.SetName(pod.Name)
	o.SetLabels(pod.Labels)
	return o
}

// budgetsOf reads budgets of either version. One that cannot be read is left out.
func budgetsOf(items []unstructured.Unstructured) []pub.Budget {
	var all []pub.Budget
	for i := range items {
		if b, err := kinds.ReadBudget(&items[i]); err == nil {
			budget, _ := pub.Read(b)
			all = append(all, budget)
		}
	}
	return all
}

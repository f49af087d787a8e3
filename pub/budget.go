package pub

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// Operation is an operation on a pod that can make the pod unavailable.
type Operation = policyv1beta1.PubOperation

// The operations that a budget can protect.
const (
	Delete = policyv1beta1.PubDeleteOperation
	Update = policyv1beta1.PubUpdateOperation
	Evict  = policyv1beta1.PubEvictOperation
	Resize = policyv1beta1.PubResizeOperation
	// Harmless is no operation: an update after which the pod is as available as before.
	Harmless Operation = ""
)

// Status is the status of a budget.
type Status = policyv1beta1.PodUnavailableBudgetStatus

// Budget is a PodUnavailableBudget as this package reads it.
type Budget struct {
	Namespace, Name string
	UID             types.UID
	Generation      int64
	// Selector selects the guarded pods. Nil where the budget has a target, or neither.
	Selector labels.Selector
	// Target is the workload whose pods are guarded. A target takes precedence over a selector.
	Target *Target
	// MaxUnavailable takes precedence over MinAvailable.
	MaxUnavailable, MinAvailable *intstr.IntOrString
	// Operations are those that the budget lists. Empty is the default.
	Operations []Operation
	// TotalReplicas replaces the replicas of the workloads.
	TotalReplicas *int32
	// Ignored selects pods that are never refused. Nil selects none.
	Ignored labels.Selector
	// Groups has the amounts count groups of pods. Nil where they count pods.
	Groups *policyv1beta1.PodGroupPolicy
	// Status as it is stored. It is shared with the object, and only read.
	Status Status
}

// Target names a workload. Its version does not matter.
type Target struct{ Group, Kind, Name string }

// Read reads a budget of either API version after conversion, and what only annotations hold where no conversion took
// place. What cannot be read is left out, with a note. The budget shares memory with the object.
func Read(b *policyv1beta1.PodUnavailableBudget) (Budget, []note.Note) {
	if b == nil {
		return Budget{}, nil
	}
	r := reader{budget: b}
	out := Budget{
		Namespace:      b.Namespace,
		Name:           b.Name,
		UID:            b.UID,
		Generation:     b.Generation,
		MaxUnavailable: r.amount("maxUnavailable", b.Spec.MaxUnavailable),
		MinAvailable:   r.amount("minAvailable", b.Spec.MinAvailable),
		Operations:     r.operations(),
		TotalReplicas:  r.totalReplicas(),
		Ignored:        r.selector("ignoredPodSelector", b.Spec.IgnoredPodSelector),
		Target:         r.target(),
		Groups:         r.groups(),
		Status:         b.Status,
	}
	if out.Target == nil {
		out.Selector = r.selector("selector", b.Spec.Selector)
	}
	if b.Spec.Selector == nil && b.Spec.TargetReference == nil {
		r.note("spec needs selector or targetRef, so that the budget guards no pod")
	}
	return out, r.notes
}

// reader collects what cannot be read.
type reader struct {
	budget *policyv1beta1.PodUnavailableBudget
	notes  []note.Note
}

func (r *reader) note(format string, args ...any) {
	r.notes = append(r.notes, newNote(NoteUnreadable, r.budget.Name, fmt.Sprintf(format, args...)))
}

// groups is nil where the budget counts pods. The schema rejects what this leaves out.
func (r *reader) groups() *policyv1beta1.PodGroupPolicy {
	p := r.budget.Spec.PodGroupPolicy
	if p == nil {
		return nil
	}
	if p.GroupSize < 1 || p.GroupLabelKey == "" {
		r.note("spec.podGroupPolicy needs groupLabelKey and a groupSize of at least 1, and is left out")
		return nil
	}
	return p
}

// operations are those of the spec, else those of the annotation.
func (r *reader) operations() []Operation {
	listed, path := r.budget.Spec.ProtectOperations, "spec.protectOperations"
	if len(listed) == 0 {
		path = "annotation " + policyv1beta1.PubProtectOperationAnnotation
		for item := range strings.SplitSeq(r.budget.Annotations[policyv1beta1.PubProtectOperationAnnotation], ",") {
			listed = append(listed, Operation(strings.TrimSpace(item)))
		}
	}
	var known []Operation
	for _, o := range listed {
		switch {
		case slices.Contains(operations(), o):
			known = append(known, o)
		case o != "":
			r.note("%s has the unknown operation %s, which is left out", path, brief(string(o)))
		}
	}
	return known
}

func operations() []Operation { return []Operation{Delete, Update, Evict, Resize} }

// brief bounds a text of a user and makes it printable.
func brief(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strconv.Quote(text)
}

// totalReplicas is that of the spec, else that of the annotation.
func (r *reader) totalReplicas() *int32 {
	path, total := "spec.protectTotalReplicas", r.budget.Spec.ProtectTotalReplicas
	if text, ok := r.budget.Annotations[policyv1beta1.PubProtectTotalReplicasAnnotation]; total == nil && ok &&
		text != "" {
		path = "annotation " + policyv1beta1.PubProtectTotalReplicasAnnotation
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			r.note("%s must be a number of 32 bits, not %s, and is left out", path, brief(text))
			return nil
		}
		n32 := int32(n)
		total = &n32
	}
	if total != nil && *total < 0 {
		r.note("%s is %d, and is left out", path, *total)
		return nil
	}
	return total
}

// amount is a number or a percentage; nil where it is neither.
func (r *reader) amount(path string, v *intstr.IntOrString) *intstr.IntOrString {
	if v == nil {
		return nil
	}
	if fault := amountFault(*v); fault != "" {
		r.note("spec.%s %s, and is left out", path, fault)
		return nil
	}
	return v
}

// selector is nil where nothing is selected: a selector that is empty or cannot be read selects nothing.
func (r *reader) selector(path string, s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return nil
	}
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		r.note("spec.%s is empty, and selects nothing", path)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		r.note("spec.%s selects nothing: %v", path, err)
		return nil
	}
	return selector
}

// target is the workload that the budget names, also where the name is incomplete: then no workload matches.
func (r *reader) target() *Target {
	ref := r.budget.Spec.TargetReference
	if ref == nil {
		return nil
	}
	group, err := groupOf(ref.APIVersion)
	if err != nil || ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		r.note("spec.targetRef must have a valid apiVersion, a kind and a name, so that the budget guards no pod")
	}
	return &Target{group, ref.Kind, ref.Name}
}

// Protects reports whether an operation needs the budget.
func (b Budget) Protects(o Operation, p Policy) bool {
	listed := b.Operations
	if len(listed) == 0 {
		listed = []Operation{Delete, Update, Evict}
	}
	return slices.Contains(listed, o) || o == Resize && !p.Resizes && slices.Contains(listed, Update)
}

// Selects reports whether the selector of the budget selects a pod with labels. A budget with a target selects none.
func (b Budget) Selects(set map[string]string) bool {
	return b.Target == nil && b.Selector != nil && b.Selector.Matches(labels.Set(set))
}

// Ignores reports whether a pod with labels is never refused.
func (b Budget) Ignores(set map[string]string) bool {
	return b.Ignored != nil && b.Ignored.Matches(labels.Set(set))
}

// Synced reports whether the status is that of the spec, as far as a controller has observed the spec.
func (b Budget) Synced() bool { return b.Status.ObservedGeneration >= b.Generation }

// GroupOf returns the group of a pod; empty where the budget counts pods. No label has the name of the group of a pod
// without a group.
func (b Budget) GroupOf(pod *corev1.Pod) string {
	if b.Groups == nil {
		return ""
	}
	if group := pod.Labels[b.Groups.GroupLabelKey]; group != "" {
		return group
	}
	return "pod/" + pod.Name
}

// isBroken reports whether the status counts a group as unavailable.
func (b Budget) isBroken(group string) bool {
	_, found := slices.BinarySearch(b.Status.UnavailablePodGroups, group)
	return found
}

// Spend returns the budget after admitted disruptions. The status of b is not changed. Records beyond the room of the
// budget, which only exempt users have, leave no room. The first pod of a group spends, further ones do not.
func (b Budget) Spend(records ...Record) Budget {
	disrupted, updated := maps.Clone(b.Status.DisruptedPods), maps.Clone(b.Status.UnavailablePods)
	for _, r := range records {
		into := &disrupted
		if r.Updated {
			into = &updated
		}
		if *into == nil {
			*into = map[string]metav1.Time{}
		}
		(*into)[r.Pod] = r.Time
		if b.isBroken(r.Group) || b.Status.UnavailableAllowed <= 0 {
			continue
		}
		b.Status.UnavailableAllowed--
		if r.Group != "" {
			groups := append(slices.Clone(b.Status.UnavailablePodGroups), r.Group)
			slices.Sort(groups)
			b.Status.UnavailablePodGroups = groups
		}
	}
	b.Status.DisruptedPods, b.Status.UnavailablePods = disrupted, updated
	return b
}

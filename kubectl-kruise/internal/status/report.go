package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload/native"
)

// Input is a workload, its pods and the events about both.
type Input struct {
	Object *unstructured.Unstructured
	Pods   []*corev1.Pod
	Events []corev1.Event
	Now    time.Time
}

// Report is how far a rollout is.
type Report struct {
	Title string
	// Line is that of rollout status.
	Line string
	Done bool
	// Failed is why the rollout can never be done.
	Failed    error
	Revisions []Revision
	// Reasons are why the rollout stands still.
	Reasons []string
	// Pods are those that are not ready or not updated.
	Pods []PodReport
}

// Revision is how many pods have a revision.
type Revision struct {
	Name        string
	Newest      bool
	Pods, Ready int
}

// PodReport is why a pod is not ready or not updated.
type PodReport struct {
	Name    string
	Reasons []string
}

// Of returns the report of a workload.
func Of(in Input) Report {
	o := in.Object
	r := Report{Title: fmt.Sprintf("%s %s", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))}
	r.Line, r.Done, r.Failed = rollout.Status(o)
	strategy, known, err := kinds.StrategyOf(o)
	if err != nil {
		r.Reasons = append(r.Reasons, err.Error())
	}
	newest := strategy.UpdateRevision
	if p := kinds.Progress(o); p != nil {
		newest = p.Revision
	}
	r.Revisions = revisions(in.Pods, newest)
	if kinds.Is(o, kinds.SidecarSet) { // whose revisions are not those of the pods
		r.Revisions = ofSidecarSet(o)
	}
	r.Reasons = append(r.Reasons, Conditions(o)...)
	switch {
	case !kinds.Paused(o):
	case kinds.IsInPlace(o):
		r.Reasons = append(r.Reasons, "paused by the annotation "+native.RolloutKey)
	default:
		r.Reasons = append(r.Reasons, "paused by "+strings.Join(kinds.PausePath(o.GroupVersionKind()), "."))
	}
	if kept := kinds.Kept(strategy.Partition, strategy.Replicas); known && kept > 0 {
		r.Reasons = append(r.Reasons, fmt.Sprintf("partition %s keeps %d of %d pods at the older revision",
			strategy.Partition, kept, strategy.Replicas))
	}
	r.Reasons = append(r.Reasons, Warnings(in.Events, in.Now)...)
	for _, pod := range in.Pods {
		reasons := explain.NotReady(pod)
		if known {
			reasons = append(reasons, explain.NotUpdated(strategy, pod)...)
		}
		if len(reasons) > 0 {
			r.Pods = append(r.Pods, PodReport{Name: pod.Name, Reasons: reasons})
		}
	}
	return r
}

// revisions counts pods by revision, the newest first.
func revisions(all []*corev1.Pod, newest string) []Revision {
	byName := map[string]*Revision{}
	for _, pod := range all {
		name := cmp.Or(explain.RevisionOf(pod), "without a revision")
		r := byName[name]
		if r == nil {
			r = &Revision{Name: name, Newest: newest != "" && revision.Match(name, newest)}
			byName[name] = r
		}
		r.Pods++
		if podutils.IsPodReady(pod) {
			r.Ready++
		}
	}
	var list []Revision
	for _, r := range byName {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Revision) int {
		if a.Newest != b.Newest {
			return map[bool]int{true: -1, false: 1}[a.Newest]
		}
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// ofSidecarSet returns the revisions of a SidecarSet, as its status counts them.
func ofSidecarSet(o *unstructured.Unstructured) []Revision {
	set, err := kinds.ReadSidecarSet(o)
	if err != nil {
		return nil
	}
	s := set.Status
	return []Revision{
		{Name: s.LatestRevision, Newest: true, Pods: int(s.UpdatedPods), Ready: int(min(s.UpdatedReadyPods, s.UpdatedPods))},
		{Name: "older", Pods: int(s.MatchedPods - s.UpdatedPods), Ready: int(max(s.ReadyPods-s.UpdatedReadyPods, 0))},
	}
}

// Conditions returns the hold of a workload, and the conditions of its status that report why it does not go on.
func Conditions(o *unstructured.Unstructured) (lines []string) {
	if kinds.IsHeld(o) {
		lines = append(lines, fmt.Sprintf("held by %s until all pods run the change: "+
			"kubectl kruise rollout undo deployment/%s goes back", native.HoldKey, o.GetName()))
	}
	list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return lines
	}
	for _, c := range list {
		fields, ok := c.(map[string]any)
		if !ok {
			continue
		}
		kind, status := fmt.Sprint(fields["type"]), fmt.Sprint(fields["status"])
		bad := kind == "Stalled" && status != "False" || strings.HasPrefix(kind, "Failed") && status == "True" ||
			kind == "Progressing" && status == "False"
		if bad {
			reason, message := text(fields["reason"]), text(fields["message"])
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("condition %s=%s %s: %s", kind, status, reason, message)))
		}
	}
	return lines
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// warnedWithin is how old a warning may be that still counts.
const warnedWithin = time.Hour

// Warnings returns the latest warning of each reason, the newest first.
func Warnings(events []corev1.Event, now time.Time) []string {
	latest := map[string]corev1.Event{}
	count := map[string]int32{}
	for _, e := range events {
		if e.Type != corev1.EventTypeWarning || now.Sub(timeOf(e)) > warnedWithin {
			continue
		}
		key := e.InvolvedObject.Kind + "/" + e.Reason
		count[key] += max(e.Count, 1)
		if old, ok := latest[key]; !ok || timeOf(e).After(timeOf(old)) {
			latest[key] = e
		}
	}
	list := make([]corev1.Event, 0, len(latest))
	for _, e := range latest {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b corev1.Event) int {
		return cmp.Or(timeOf(b).Compare(timeOf(a)), cmp.Compare(a.Reason, b.Reason))
	})
	var lines []string
	for _, e := range list {
		n := count[e.InvolvedObject.Kind+"/"+e.Reason]
		lines = append(lines, fmt.Sprintf("event %s (%d times, last about %s %s): %s", e.Reason, n,
			strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name, e.Message))
	}
	return lines
}

func timeOf(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

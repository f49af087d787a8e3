package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const (
	// RefusalPause is how long a pod whose update was refused lets others go first.
	RefusalPause = 10 * time.Second
	// hookPause is after how long Input.May is asked again about a pod.
	hookPause = time.Second
	// mostText of a reported failure.
	mostText = 1000
)

// Answer is what became of one write of a plan.
type Answer struct {
	// Pod as the API server has it after the write, or in its place; nil where that is unknown.
	Pod *corev1.Pod
	// Refused is the pod whose update was refused; empty for none.
	Refused types.UID
	// Outdated means that the pod was no longer what the write was planned for.
	Outdated bool
}

// Follow returns the input of the next plan, after the writes of the last one were answered, and whether that plan may find
// something else to do at once: a pod that was refused makes room for another one, and an outdated one may want another write.
func (in Input) Follow(answers []Answer) (next Input, again bool) {
	next = in
	next.Held = map[types.UID]time.Time{}
	for uid, until := range in.Held {
		if until.After(in.Now) {
			next.Held[uid] = until
		}
	}
	fresh := map[types.UID]*corev1.Pod{}
	for _, a := range answers {
		if a.Refused != "" {
			next.Held[a.Refused] = in.Now.Add(RefusalPause)
		}
		if a.Pod != nil {
			fresh[a.Pod.UID] = a.Pod
		}
		again = again || a.Refused != "" || a.Outdated
	}
	next.Pods = slices.Clone(in.Pods)
	for i, pod := range next.Pods {
		if answered := fresh[pod.UID]; answered != nil {
			next.Pods[i] = answered
		}
	}
	return next, again
}

// isHeld notes why a pod may not be updated now, if it may not, and when that ends.
func (p *planner) isHeld(m *member) bool {
	if rest := p.in.Held[m.pod.UID].Sub(p.in.Now); rest > 0 {
		p.note(NoteRefused, m, "its update was refused a moment ago")
		p.requeueAfter(rest)
		return true
	}
	if p.in.May == nil {
		return false
	}
	ok, why := p.in.May(m.pod)
	if !ok {
		p.note(NoteRefused, m, "%s", why)
		p.requeueAfter(hookPause)
	}
	return !ok
}

func (p *planner) requeueAfter(d time.Duration) {
	if p.plan.RequeueAfter == 0 || d < p.plan.RequeueAfter {
		p.plan.RequeueAfter = d
	}
}

// IsOutdated reports whether a pod is no longer what a write was planned for: the write is refused then, and no failure.
func (w Write) IsOutdated(live *corev1.Pod) bool {
	if live.UID != w.Pod.UID || !slices.EqualFunc(live.Spec.Containers, w.Pod.Spec.Containers, sameImage) {
		return true
	}
	for key := range w.Annotations {
		now, is := live.Annotations[key]
		then, was := w.Pod.Annotations[key]
		if is != was || now != then {
			return true
		}
	}
	return false
}

// NewlyBlocked is the number of marked pods of which it was not known that the set cannot update them.
func (p Plan) NewlyBlocked() (n int) {
	for i := range p.Mark {
		if !p.Mark[i].Upgradable && p.Mark[i].New {
			n++
		}
	}
	return n
}

// Failures is the text about the pods that cannot be read, and about the writes that were refused; empty where there are none.
// It is the same as long as these are.
func (p Plan) Failures(refused []error) string {
	var all []string
	for _, n := range p.Notes {
		if n.Code == NoteUnreadable {
			all = append(all, fmt.Sprintf("pod %s: %s", n.Object, n.Text))
		}
	}
	for _, err := range refused {
		all = append(all, err.Error())
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	text := strings.ToValidUTF8(all[0][:min(len(all[0]), mostText)], "")
	if len(all) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(all)-1)
	}
	return text
}

// Stall follows how updates advance that wait for pods to become ready. The zero value has seen no plan.
type Stall struct {
	step     string
	since    time.Time
	reported int64 // the generation
}

// Next returns the stall after a plan for a set. text is not empty when the updates have made no step for the limit, once in a
// generation. Until then, after is when to look again.
func (s Stall) Next(set *appsv1beta1.SidecarSet, p Plan, now time.Time, limit time.Duration) (next Stall, text string, after time.Duration) {
	step := ""
	for _, n := range p.Notes {
		if n.Code == NoteUpdateLimited {
			text = n.Text
			step = fmt.Sprint(set.Generation, p.Status.MatchedPods, p.Status.UpdatedPods, p.Status.UpdatedReadyPods)
		}
	}
	if s.step != step {
		s.step, s.since = step, now
	}
	if step == "" || s.reported == set.Generation {
		return s, "", 0
	}
	if rest := s.since.Add(limit).Sub(now); rest > 0 {
		return s, "", rest
	}
	s.reported = set.Generation
	return s, text, 0
}

package rollout

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// choose plans the updates of the pods that may be updated now.
func (p *planner) choose() {
	waiting := p.waiting()
	p.order(waiting)
	partition, budget, err := p.limits()
	if err != nil {
		p.errs = append(p.errs, err)
		p.note(NoteSpecUnread, nil, "no pod is updated: %v", err)
		return
	}
	if n := p.old(); len(waiting) > 0 && n > 0 {
		kept := len(waiting) - min(len(waiting), max(0, n-partition))
		p.noteWaiting(NotePartition, kept, "to be updated: the partition keeps as many")
		waiting = waiting[:len(waiting)-kept]
	}
	p.walk(waiting, budget)
}

// walk plans updates within the budget. A pod that is not ready costs no budget.
func (p *planner) walk(waiting []*member, most int32) {
	unready := int32(0)
	for _, m := range p.members {
		if m.updated && (!m.consistent || !m.ready) {
			unready++
		}
	}
	for i, m := range waiting {
		if m.ready && unready >= most {
			p.noteWaiting(NoteUpdateLimited, len(waiting)-i,
				fmt.Sprintf("to be updated (updated and not ready: %d, at most: %d)", unready, max(0, most)))
			return
		}
		if p.isHeld(m) {
			continue
		}
		change, err := p.update(m)
		if err != nil {
			p.fail(m, err)
			continue
		}
		if m.ready {
			unready++
		}
		p.result.Updates = append(p.result.Updates, change)
	}
}

// fail notes that a pod cannot be read or changed.
func (p *planner) fail(m *member, err error) {
	p.note(NoteUnreadable, m, "%v", err)
	p.errs = append(p.errs, fmt.Errorf("pod %s/%s: %w", m.pod.Namespace, m.pod.Name, err))
}

// waiting returns the pods that could be updated now.
func (p *planner) waiting() []*member {
	var waiting []*member
	unselected := 0
	for _, m := range p.members {
		switch {
		case m.updated:
		case !p.selected(m):
			unselected++
		case !p.canUpdate(m):
			p.note(NoteNotUpgradable, m, "more than images has changed; a new pod will have it")
		case m.unreadable != nil:
			p.fail(m, m.unreadable)
		case m.reset:
			p.note(NoteUnderWay, m, "a hot upgrade ends first")
		default:
			if name := p.restarting(m); name != "" {
				p.note(NoteUnderWay, m, "container %s does not run the image of an earlier update yet", name)
				continue
			}
			waiting = append(waiting, m)
		}
	}
	p.noteWaiting(NoteNotSelected, unselected, "to be selected by updateStrategy.selector")
	return waiting
}

// canUpdate reports whether a pod lacks no more of the set than images.
func (p *planner) canUpdate(m *member) bool {
	bare, _, err := injectedOf(m.pod, kruise.SidecarSetHashWithoutImageKey, p.in.Set.Name)
	return err == nil && bare == p.bare
}

func (p *planner) readSelector() {
	p.only = labels.Everything()
	if s := p.in.Set.Spec.UpdateStrategy.Selector; s != nil {
		var err error
		if p.only, err = metav1.LabelSelectorAsSelector(s); err != nil {
			p.only = labels.Nothing()
			p.errs = append(p.errs, &SpecError{Field: "spec.updateStrategy.selector", Err: err})
		}
	}
}

// selected reports whether the strategy selects a pod for updates. A selector that cannot be read selects none.
func (p *planner) selected(m *member) bool {
	if p.only == nil {
		p.readSelector()
	}
	return p.only.Matches(labels.Set(m.pod.Labels))
}

// limits returns how many pods stay old, and how many updated ones may be unready.
func (p *planner) limits() (partition int, budget int32, err error) {
	u := &p.in.Set.Spec.UpdateStrategy
	n, err := scale.Partition(u.Partition, int32(len(p.members)))
	if err != nil {
		return 0, 0, &SpecError{Field: "spec.updateStrategy.partition", Err: err}
	}
	budget, err = scale.AmountOr(u.MaxUnavailable, 1, int32(len(p.members)), scale.RoundUp)
	if err != nil {
		return 0, 0, &SpecError{Field: "spec.updateStrategy.maxUnavailable", Err: err}
	}
	return int(n), budget, nil
}

func (m *member) labels() map[string]string { return m.pod.Labels }

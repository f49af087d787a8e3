package forecast

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/note"
)

// forecast is what the simulation shows in the end.
func (s *simulation) forecast(ctx context.Context) (*Forecast, error) {
	if err := s.reread(ctx); err != nil {
		return nil, err
	}
	j, err := newJudge(ctx, s)
	if err != nil {
		return nil, err
	}
	f := &Forecast{
		Kind: s.kind.name, Namespace: s.name.Namespace, Name: s.name.Name,
		From: cmp.Or(s.live.current, s.live.update), To: s.record.update, Bounds: s.wanted.bounds,
		Pods: j.pods(), Timeline: s.record.timeline, Pace: s.nodes.pace, Severity: Harmless,
		Batches: make([]Batch, len(s.record.batches)),
	}
	for i, at := range s.record.batches {
		f.Batches[i].At = Seconds(at.Sub(s.begin))
	}
	for i := range f.Pods {
		if p := &f.Pods[i]; p.Batch > 0 {
			f.Batches[p.Batch-1].Pods = append(f.Batches[p.Batch-1].Pods, p.Name)
		}
		if f.Severity = worst(f.Severity, severityOf(&f.Pods[i])); f.From == "" {
			f.From = f.Pods[i].From // of a kind whose status has none
		}
	}
	s.hold(f)
	end := f.Timeline[len(f.Timeline)-1]
	f.Duration = durationOf(f.Timeline)
	f.Incomplete = f.Severity == Stuck || end.Pods != f.Bounds.Replicas && s.kind.owns == nil || s.failed != nil
	if s.failed != nil {
		f.Severity = Stuck
		f.Notes = append(f.Notes, Note{Level: note.Blocked, Code: reasonFailed, Text: s.failed.Error()})
	}
	for _, n := range s.notes {
		f.Notes = append(f.Notes, Note(n))
	}
	return f, nil
}

// hold adds how a Deployment is rolled out.
func (s *simulation) hold(f *Forecast) {
	if s.held {
		f.Hold = &Hold{}
	}
	if s.held && !s.released.IsZero() {
		f.Hold.Ends = ptr.To(Seconds(s.released.Sub(s.begin)))
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		if !s.rollsOut || p.Fate != Recreated || p.Reason == reasonSurge || f.BuiltIn != "" {
			continue
		}
		_, why, found := strings.Cut(p.Text, "in place: ")
		switch n := len(p.Paths); {
		case n > 0:
			f.BuiltIn = strings.Join(p.Paths, ", ") + map[bool]string{true: " changes", false: " change"}[n == 1]
		case found:
			f.BuiltIn = why
		default:
			f.BuiltIn = p.Text
		}
	}
}

// durationOf is when the counts have changed last, but for pods that end where others change.
func durationOf(timeline []Moment) Seconds {
	for i := len(timeline) - 1; i > 0; i-- {
		if timeline[i].counts() != timeline[i-1].counts() {
			return timeline[i].At
		}
	}
	return timeline[len(timeline)-1].At
}

// reasonFailed is the reason of what does not happen because the reconciler returns an error.
const reasonFailed = "ReconcileFailed"

// reasonTerminating is the reason of a pod that was deleted before the change.
const reasonTerminating = "Terminating"

// reasonSelector is the reason of a pod that stays because of its node.
const reasonSelector = "NodeNotSelected"

// reasonSurge is the reason of a pod that is deleted once a new pod stands in its place.
const reasonSurge = "Surge"

func severityOf(p *Pod) Severity {
	switch {
	case p.Fate == Blocked:
		return Stuck
	case p.Fate == Recreated, p.Fate == Deleted && p.Reason != reasonTerminating:
		return Recreates
	case len(p.Containers) > 0:
		return Restarts
	}
	return Harmless
}

func worst(a, b Severity) Severity {
	all := Severities()
	return all[max(slices.Index(all, a), slices.Index(all, b))]
}

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// tale is what happened, as a log for humans.
type tale struct {
	*world
	lines []line
	// counts as told last, and the version that was counted.
	counts  string
	counted int64
	// acts and notes of the last plan.
	acts  string
	notes map[string]bool
}

type line struct {
	tick      int
	who, says string
}

func (l *tale) text() string {
	var b strings.Builder
	for i, line := range l.lines {
		at := fmt.Sprint(line.tick)
		if i > 0 && l.lines[i-1].tick == line.tick {
			at = ""
		}
		text := fmt.Sprintf("%4s  %-10s  %s", at, line.who, line.says)
		if line.who == "user" && i > 0 {
			text = "\n" + text
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}

// say adds a line.
func (l *tale) say(who, format string, args ...any) {
	l.lines = append(l.lines, line{l.tick, who, fmt.Sprintf(format, args...)})
}

// tell says what a write did to a pod.
func (l *tale) tell(w apiWrite) {
	name := w.pod().Name
	switch {
	case w.before == nil:
		l.say(w.by, "creates %s at %s", name, versionOf(&w.after.ObjectMeta))
	case w.after == nil:
		l.say(w.by, "%s is gone", name)
	default:
		for _, what := range differences(w.before, w.after) {
			l.say(w.by, "%s %s", name, what)
		}
	}
}

// differences are sentences about what is new with a pod.
func differences(before, after *corev1.Pod) []string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(before.DeletionTimestamp == nil && after.DeletionTimestamp != nil, "is deleted")
	add(before.Spec.NodeName != after.Spec.NodeName, "is on %s", after.Spec.NodeName)
	was, is := conditionOf(before, kruise.InPlaceUpdateReady), conditionOf(after, kruise.InPlaceUpdateReady)
	add(was != is && is == corev1.ConditionFalse, "is taken out of traffic")
	add(was != is && is == corev1.ConditionTrue && was != "", "is put back")
	was, is = conditionOf(before, kruise.KruisePodReadyConditionType), conditionOf(after, kruise.KruisePodReadyConditionType)
	add(was != is && is == corev1.ConditionFalse, "is held not ready")
	add(was == corev1.ConditionFalse && is == corev1.ConditionTrue, "is held no more")
	from, to := before.Labels[kruise.PodRevisionLabelKey], after.Labels[kruise.PodRevisionLabelKey]
	add(from != to && versionOf(&before.ObjectMeta) != versionOf(&after.ObjectMeta), "goes from %s to %s", versionOf(&before.ObjectMeta), versionOf(&after.ObjectMeta))
	add(from != to && versionOf(&before.ObjectMeta) == versionOf(&after.ObjectMeta), "is to leave %s", versionOf(&before.ObjectMeta))
	add(from == to && versionOf(&before.ObjectMeta) != versionOf(&after.ObjectMeta), "goes on to %s", versionOf(&after.ObjectMeta))
	_, had := before.Labels[kruise.SpecifiedDeleteKey]
	_, has := after.Labels[kruise.SpecifiedDeleteKey]
	add(!had && has, "is chosen for deletion")
	add(stateOf(&before.ObjectMeta) != stateOf(&after.ObjectMeta), "is %s, after %s", stateOf(&after.ObjectMeta), stateOf(&before.ObjectMeta))
	for i := range after.Status.ContainerStatuses {
		now := &after.Status.ContainerStatuses[i]
		add(now.RestartCount > 0 && i < len(before.Status.ContainerStatuses) && now.RestartCount != before.Status.ContainerStatuses[i].RestartCount, "starts again, with %s", now.Image)
	}
	ready := conditionOf(after, corev1.PodReady)
	add(ready != conditionOf(before, corev1.PodReady) && (ready == corev1.ConditionTrue || conditionOf(before, corev1.PodReady) == corev1.ConditionTrue), "is %s", map[bool]string{true: "ready", false: "not ready"}[ready == corev1.ConditionTrue])
	add(len(before.Finalizers) > len(after.Finalizers) || before.Labels["hook"] != "" && after.Labels["hook"] == "", "is let go")
	add(len(before.Finalizers) < len(after.Finalizers) || before.Labels["hook"] == "" && after.Labels["hook"] != "", "is taken back")
	return all
}

// plan says what the controller is about in a turn, and why, where that is something else than in the turn before. It is
// told before what was done of it since.
func (l *tale) plan(t *turn, since int) {
	var acts []string
	add := func(verb string, names []string) {
		if len(names) > 0 {
			acts = append(acts, verb+" "+strings.Join(names, ", "))
		}
	}
	verb := "update"
	if t.plan.Backward {
		verb = "move back"
	}
	add("restore", instanceNames(t.plan.Restore))
	add("create", births(t.plan.Create))
	add("delete", instanceNames(t.plan.Delete))
	add(verb, instanceNames(t.plan.Update))
	notes := map[string]bool{}
	for _, n := range t.plan.Notes {
		if n.Code != scale.NoteNotAvailable { // it says nothing that the counts do not say
			notes[strings.TrimSpace(n.Code+" "+n.Object)+": "+n.Text] = true
		}
	}
	for _, n := range t.notes {
		notes[n.Code+" "+n.Object+": "+n.Text] = true
	}
	did := slices.Clone(l.lines[since:])
	l.lines = l.lines[:since]
	if text := strings.Join(acts, "; "); text != l.acts {
		if l.acts = text; text != "" {
			l.say("plan", "%s", text)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(notes)) {
		if !l.notes[text] {
			l.say("note", "%s", text)
		}
	}
	l.notes = notes
	l.lines = append(l.lines, did...)
}

func births(all []scale.Creation) []string {
	words := make([]string, len(all))
	for i, b := range all {
		words[i] = strings.TrimSpace(b.Slot + map[bool]string{true: " updated", false: " old"}[b.Updated])
	}
	return words
}

func instanceNames(all []scale.Instance) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// count says how many pods there are, where that is something else than before.
func (l *tale) count() {
	if l.counted == l.server.version && l.server.shop.Spec.MinReadySeconds == 0 {
		return
	}
	l.counted = l.server.version
	versions, available, ending := map[string]int{}, 0, 0
	for _, o := range l.server.pods {
		switch {
		case !isActive(o.pod):
			ending++
			continue
		case l.rules.isUp(o.pod):
			available++
		}
		versions[versionOf(&o.pod.ObjectMeta)]++
	}
	text := fmt.Sprintf("%d available", available)
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		text += fmt.Sprintf(", %d at %s", versions[v], v)
	}
	if ending > 0 {
		text += fmt.Sprintf(", %d ending", ending)
	}
	if text != l.counts && (len(versions) > 0 || l.counts != "") {
		l.counts = text
		l.say("", "= %s", text)
	}
}

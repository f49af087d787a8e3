package cloneset_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

// tale is what happened, as a log for humans.
type tale struct {
	*world
	lines []line
	// who acts now.
	who string
	// notes of the latest pass, and told those of the pass before, as texts.
	notes []note.Note
	told  map[string]bool
	// counts as told last.
	counts string
}

type line struct {
	tick              int
	who, object, says string
}

func (l *tale) text() string {
	var b strings.Builder
	for i, line := range l.lines {
		at := fmt.Sprint(line.tick)
		if i > 0 && l.lines[i-1].tick == line.tick {
			at = ""
		}
		text := fmt.Sprintf("%4s  %-10s  %s", at, line.who, strings.TrimLeft(line.object+" "+line.says, lastObject+" "))
		if line.who == "user" && i > 0 && l.lines[i-1].who != "user" {
			text = "\n" + text
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}

// say adds a line.
func (l *tale) say(who, says string) { l.lines = append(l.lines, line{l.tick, who, "", says}) }

// as tells what one component does. The lines of a pass are ordered by object: writes go out at the same time.
func (l *tale) as(who string, do func()) {
	l.who = who
	since := len(l.lines)
	do()
	if who == "controller" {
		slices.SortStableFunc(l.lines[since:], func(a, b line) int { return cmp.Compare(a.object, b.object) })
	}
}

// tell adds what a change did to a pod.
func (l *tale) tell(c change) {
	add := func(says string) { l.lines = append(l.lines, line{l.tick, l.who, c.pod().Name, says}) }
	switch {
	case c.before == nil:
		add("is created at " + versionOf(&c.after.ObjectMeta))
	case c.after == nil:
		add("is gone")
	default:
		for _, what := range differences(c.before, c.after) {
			add(what)
		}
	}
}

// report adds what the status counts.
func (l *tale) report(was, is *v1beta1.CloneSet) {
	text := func(set *v1beta1.CloneSet) string {
		if set == nil {
			return ""
		}
		s := set.Status
		const counts = "status: %d replicas, %d available, %d updated"
		return fmt.Sprintf(counts, s.Replicas, s.AvailableReplicas, s.UpdatedReplicas)
	}
	if was != nil && is != nil && text(was) != text(is) {
		l.lines = append(l.lines, line{l.tick, l.who, lastObject, text(is)})
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
	add(isActive(before) && !isActive(after), "is deleted")
	add(before.Spec.NodeName != after.Spec.NodeName, "is on %s", after.Spec.NodeName)
	was, is := conditionOf(before, kruise.InPlaceUpdateReady), conditionOf(after, kruise.InPlaceUpdateReady)
	add(was != is && is == corev1.ConditionFalse, "leaves traffic")
	add(was == corev1.ConditionFalse && is == corev1.ConditionTrue, "goes back into traffic")
	gate := kruise.KruisePodReadyConditionType
	was, is = conditionOf(before, gate), conditionOf(after, gate)
	add(was != is && is == corev1.ConditionFalse, "is held not ready")
	add(was == corev1.ConditionFalse && is == corev1.ConditionTrue, "is held no more")
	moves := revisionOf(before) != revisionOf(after)
	from, to := versionOf(&before.ObjectMeta), versionOf(&after.ObjectMeta)
	add(moves && from != to, "goes from %s to %s", from, to)
	add(moves && from == to, "is to leave %s", from)
	add(!moves && from != to, "goes on to %s", to)
	add(!isChosen(before) && isChosen(after), "is chosen for deletion")
	add(isChosen(before) && !isChosen(after), "is chosen for deletion no more")
	add(stateOf(&before.ObjectMeta) != stateOf(&after.ObjectMeta), "is %s, after %s",
		stateOf(&after.ObjectMeta), stateOf(&before.ObjectMeta))
	for i := range after.Status.ContainerStatuses {
		now := &after.Status.ContainerStatuses[i]
		again := now.RestartCount > 0 && i < len(before.Status.ContainerStatuses) &&
			now.RestartCount != before.Status.ContainerStatuses[i].RestartCount
		add(again, "restarts, with %s", now.Image)
	}
	was, is = conditionOf(before, corev1.PodReady), conditionOf(after, corev1.PodReady)
	add(was != is && is == corev1.ConditionTrue, "is ready")
	add(was == corev1.ConditionTrue && is != was, "is not ready")
	held, holds := before.Labels[hookLabel] != "", after.Labels[hookLabel] != ""
	add(len(before.Finalizers) > len(after.Finalizers) || held && !holds, "is released")
	add(len(before.Finalizers) < len(after.Finalizers) || !held && holds, "is taken back")
	return all
}

// explain adds the notes of a pass that the pass before did not have.
func (l *tale) explain() {
	fresh := map[string]bool{}
	for _, n := range l.notes {
		if n.Code != scale.NoteNotAvailable { // the counts show it
			fresh[strings.TrimSpace(n.Code+" "+n.Object)+": "+n.Text] = true
		}
	}
	for _, text := range slices.Sorted(maps.Keys(fresh)) {
		if !l.told[text] {
			l.say("note", text)
		}
	}
	l.told = fresh
}

// count adds how many pods there are, where that has changed.
func (l *tale) count() {
	versions, available, ending := map[string]int{}, 0, 0
	for _, pod := range l.live.pods {
		switch {
		case !isActive(pod):
			ending++
			continue
		case l.rules.isUp(pod):
			available++
		}
		versions[versionOf(&pod.ObjectMeta)]++
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
		l.say("", "= "+text)
	}
}

// versionOf is what stories call a template by.
func versionOf(m *metav1.ObjectMeta) string { return m.Annotations[versionKey] }

const (
	versionKey = "test.kruisekit.dev/version"
	// hookLabel is the label of a hook in stories.
	hookLabel = "hook"
	// lastObject sorts after the names of pods.
	lastObject = "~"
)

func stateOf(m *metav1.ObjectMeta) string { return m.Labels[kruise.LifecycleStateKey] }

package entries

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/note"
)

// The codes of notes.
const (
	// NotePolicy is an entry whose failurePolicy another writer has set. The edit stays.
	NotePolicy = "PolicyEdited"
	// NoteUndone is a configuration whose entries another writer has changed or removed. They are written again.
	NoteUndone = "EntriesEdited"
	// NoteCatchAll is an entry of the main configuration that sends all pods, as one of a former installation does.
	NoteCatchAll = "CatchAllLeft"
	// NoteNoAuthority is a configuration that waits for a CA.
	NoteNoAuthority = "NoAuthority"
)

// policies reports entries whose policy was changed by another writer, as in an outage. The edit stays; the note
// explains why pods are created without sidecars, or rejected.
func policies(have *configuration, want []entry) []note.Note {
	if have == nil {
		return nil
	}
	var notes []note.Note
	for i := range want {
		at := slices.IndexFunc(have.Webhooks, func(h entry) bool { return h.Name == want[i].Name })
		if at < 0 || ptr.Equal(have.Webhooks[at].FailurePolicy, want[i].FailurePolicy) {
			continue
		}
		notes = append(notes, note.Note{Level: note.Blocked, Code: NotePolicy, Object: want[i].Name, Text: fmt.Sprintf(
			"another writer set its failurePolicy to %s, which was %s; the policy stays until the entry is deleted",
			ptr.Deref(have.Webhooks[at].FailurePolicy, ""), ptr.Deref(want[i].FailurePolicy, ""))})
	}
	return notes
}

// undoneNote names at most a few of the parts.
func undoneNote(configuration string, edited []string) note.Note {
	const most = 5
	what := "the configuration was deleted or reset"
	if n := len(edited); n > most {
		what = strings.Join(edited[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	} else if n > 0 {
		what = strings.Join(edited, ", ")
	}
	return note.Note{
		Code: NoteUndone, Object: configuration, Text: "another writer changed entries of the pod webhook (" + what +
			"); they were written again, with pauses that double while this repeats",
	}
}

// catchAlls reports entries of the main configuration that send pods. A former installation leaves them there. They
// fail closed for every pod, and send the pods of our entries twice.
func catchAlls(main *configuration, p Policy) []note.Note {
	if main == nil {
		return nil
	}
	sends, kind := createsPods, "mutatingwebhookconfiguration"
	what := "sends new pods, each a second time, and rejects them while no replica answers"
	if p.Disruptions {
		sends, kind = disruptsPods, "validatingwebhookconfiguration"
		what = "sends updates, deletions or evictions of all pods, and rejects them while no replica answers"
	}
	var notes []note.Note
	for i := range main.Webhooks {
		name := main.Webhooks[i].Name
		if !slices.ContainsFunc(main.Webhooks[i].Rules, sends) {
			continue
		}
		notes = append(notes, note.Note{Level: note.Blocked, Code: NoteCatchAll, Object: main.Name, Text: fmt.Sprintf(
			`entry %s of a former installation still %s; remove it: `+
				`kubectl patch %s %s --type=json -p '[{"op":"test","path":"/webhooks/%d/name","value":"%s"},{"op":"remove","path":"/webhooks/%d"}]'`,
			name, what, kind, main.Name, i, name, i)})
	}
	return notes
}

// createsPods reports whether a rule is about the creation of pods.
func createsPods(r admissionregistrationv1.RuleWithOperations) bool {
	return concerns(r, "pods", admissionregistrationv1.Create)
}

// disruptsPods reports whether a rule is about updates, deletions or evictions of pods.
func disruptsPods(r admissionregistrationv1.RuleWithOperations) bool {
	return concerns(r, "pods", admissionregistrationv1.Update) || concerns(r, "pods", admissionregistrationv1.Delete) ||
		concerns(r, "pods/eviction", admissionregistrationv1.Create)
}

// concerns reports whether a rule is about an operation on a resource.
func concerns(
	r admissionregistrationv1.RuleWithOperations, resource string, o admissionregistrationv1.OperationType,
) bool {
	anyOf := func(all []string, of ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return slices.Contains(of, s) })
	}
	does := slices.Contains(r.Operations, o) || slices.Contains(r.Operations, admissionregistrationv1.OperationAll)
	return does && anyOf(r.APIGroups, corev1.GroupName, "*") && anyOf(r.Resources, resource, "*", "*/*")
}

package workloads_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/note"
)

func at(minute int) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(minute) * time.Minute)
}

func stamp(minute int) metav1.Time { return metav1.NewTime(at(minute)) }

func TestSet(t *testing.T) {
	old := workloads.Condition{
		Type:               "A",
		Status:             corev1.ConditionTrue,
		Reason:             "Fine",
		Message:            "as before",
		LastUpdateTime:     stamp(0),
		LastTransitionTime: stamp(0),
	}
	other := workloads.Condition{Type: "B", Status: corev1.ConditionTrue}
	cases := map[string]struct {
		why string
		set workloads.Condition
		min int
		end workloads.Conditions
	}{
		"the same status and reason": {
			"a condition that stays the same costs no write, whatever its text",
			workloads.Condition{Type: "A", Status: corev1.ConditionTrue, Reason: "Fine", Message: "other words"},
			1,
			workloads.Conditions{old, other},
		},
		"another reason": {
			why: "the status has not changed since",
			set: workloads.Condition{Type: "A", Status: corev1.ConditionTrue, Reason: "Good"},
			min: 1,
			end: workloads.Conditions{other, {
				Type: "A", Status: corev1.ConditionTrue, Reason: "Good", LastUpdateTime: stamp(1), LastTransitionTime: stamp(0),
			}},
		},
		"another status": {
			why: "both times are those of the change",
			set: workloads.Condition{Type: "A", Status: corev1.ConditionFalse, Reason: "Bad"},
			min: 2,
			end: workloads.Conditions{other, {
				Type: "A", Status: corev1.ConditionFalse, Reason: "Bad", LastUpdateTime: stamp(2), LastTransitionTime: stamp(2),
			}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			list := workloads.Conditions{old, other}
			list.Set(c.set, at(c.min))
			if diff := cmp.Diff(c.end, list); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestSetError(t *testing.T) {
	var list workloads.Conditions
	list.SetError("Failed", errors.New("no quota"), at(0))
	want := workloads.Conditions{{
		Type: "Failed", Status: corev1.ConditionTrue, LastTransitionTime: stamp(0), Message: "no quota",
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("a failure (-want +got):\n%s", diff)
	}
	list.SetError("Failed", errors.New("no quota"), at(1))
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("the same failure again costs no write (-want +got):\n%s", diff)
	}
	list.SetError("Failed", errors.New("no node"), at(2))
	want[0].Message = "no node"
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("another failure keeps the time of the first (-want +got):\n%s", diff)
	}
	if list.SetError("Failed", nil, at(3)); len(list) != 0 {
		t.Errorf("the failure is over: %v", list)
	}
}

func TestStall(t *testing.T) {
	pull := note.Note{Level: note.Blocked, Code: "ImagePullFailed", Object: "web-1", Text: "cannot pull web:1"}
	wait := note.Note{Level: note.Waiting, Code: "NotAvailable", Object: "web-1", Text: "is not available"}
	is := func(s corev1.ConditionStatus, n note.Note, minute int) *workloads.Condition {
		return &workloads.Condition{
			Type:               workloads.Stalled,
			Status:             s,
			Reason:             n.Code,
			Message:            n.Message(),
			LastUpdateTime:     stamp(minute),
			LastTransitionTime: stamp(minute),
		}
	}
	cases := map[string]struct {
		why      string
		old      *workloads.Condition
		headline note.Note
		since    int // the minute in which the wait began; now is minute 10
		same     bool
		want     *workloads.Condition
		after    time.Duration
	}{
		"blocked for long": {
			why:      "the condition stays the same, whichever pod is named first",
			old:      is(corev1.ConditionTrue, pull, 1),
			headline: note.Note{Level: note.Blocked, Code: pull.Code, Object: "web-2"},
			since:    1,
			same:     true,
			want:     is(corev1.ConditionTrue, pull, 1),
		},
		"blocked at another one": {
			why:      "another revision has a text of its own",
			old:      is(corev1.ConditionTrue, pull, 1),
			headline: pull,
			since:    1,
			want:     is(corev1.ConditionTrue, pull, 10),
		},
		"waits since now": {"a wait may end by itself", nil, wait, 10, true, nil, time.Minute},
		"waits for a minute": {
			why:      "a wait that goes on is reported",
			headline: wait,
			since:    9,
			same:     true,
			want:     is(corev1.ConditionUnknown, wait, 10),
		},
		"blocked, then waits": {
			why:      "a crash loop must not change the condition at each restart",
			old:      is(corev1.ConditionTrue, pull, 1),
			headline: wait,
			since:    10,
			same:     true,
			want:     is(corev1.ConditionTrue, pull, 1),
			after:    time.Minute,
		},
		"blocked, then nothing": {
			why:      "the block may return",
			old:      is(corev1.ConditionTrue, pull, 1),
			headline: note.Note{},
			since:    10,
			same:     true,
			want:     is(corev1.ConditionTrue, pull, 1),
			after:    time.Minute,
		},
		"nothing for a minute": {"the block is over", is(corev1.ConditionTrue, pull, 1), note.Note{}, 9, true, nil, 0},
		"waits, and then is blocked": {
			why:      "a block comes before a wait",
			old:      is(corev1.ConditionUnknown, wait, 1),
			headline: pull,
			since:    10,
			same:     true,
			want:     is(corev1.ConditionTrue, pull, 10),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var list workloads.Conditions
			if c.old != nil {
				list = append(list, *c.old)
			}
			after := workloads.Stall(&list, workloads.Stalling{
				Now:          at(10),
				Headline:     c.headline,
				SameRevision: c.same,
				Wait:         workloads.Wait{For: c.headline.Code, Since: at(c.since)},
			})
			if diff := cmp.Diff(c.want, list.Find(workloads.Stalled)); diff != "" || after != c.after {
				t.Errorf("%s: looks again after %s, want %s (-want +got):\n%s", c.why, after, c.after, diff)
			}
		})
	}
}

func TestWait(t *testing.T) {
	first := workloads.Wait{}.Next(note.Note{Code: "NotAvailable", Object: "a"}, 3, at(1))
	if again := first.Next(note.Note{Code: "NotAvailable", Object: "b"}, 2, at(2)); again != first {
		t.Errorf("the same wait began again: %v", again)
	}
	if further := first.Next(note.Note{Code: "NotAvailable", Object: "b"}, 4, at(2)); further.Since != at(2) {
		t.Errorf("a pod was updated meanwhile: %v", further)
	}
	if other := first.Next(note.Note{Code: "Crashing"}, 3, at(3)); other.Since != at(3) {
		t.Errorf("another wait: %v", other)
	}
}

func TestIgnoreRewording(t *testing.T) {
	object := func(change func(o map[string]any)) *unstructured.Unstructured {
		o := map[string]any{
			"metadata": map[string]any{"name": "web", "resourceVersion": "1", "generation": int64(3)},
			"status": map[string]any{"replicas": int64(2), "conditions": []any{
				map[string]any{"type": "Failed", "message": "refused, request 1", "lastTransitionTime": "then"}, map[string]any{
					"type": "Progressing", "reason": "X",
				},
			}},
		}
		if change != nil {
			change(o)
		}
		return &unstructured.Unstructured{Object: o}
	}
	condition := func(o map[string]any, i int) map[string]any {
		return o["status"].(map[string]any)["conditions"].([]any)[i].(map[string]any)
	}
	reworded := func(o map[string]any) {
		condition(o, 0)["message"] = "refused, request 2"
		o["metadata"].(map[string]any)["resourceVersion"] = "2"
		o["metadata"].(map[string]any)["managedFields"] = []any{"x"}
	}
	cases := map[string]struct {
		why    string
		change func(o map[string]any)
		want   bool
	}{
		"reworded": {"the own report of a failure is no reason for a pass", reworded, false},
		"nothing":  {"a resync is no report", func(map[string]any) {}, true},
		"reworded with the spec": {
			"a user changed the spec",
			func(o map[string]any) { reworded(o); o["metadata"].(map[string]any)["generation"] = int64(4) }, true,
		},
		"reworded with an annotation": {"a user changed an annotation", func(o map[string]any) {
			reworded(o)
			o["metadata"].(map[string]any)["annotations"] = map[string]any{"a": "b"}
		}, true},
		"reworded with the status": {
			"another counter changed",
			func(o map[string]any) { reworded(o); o["status"].(map[string]any)["replicas"] = int64(1) }, true,
		},
		"reworded with another": {
			"another condition changed", func(o map[string]any) { reworded(o); condition(o, 1)["reason"] = "Y" }, true,
		},
		"mended": {
			"a failure is over", func(o map[string]any) { o["status"] = map[string]any{"replicas": int64(2)} }, true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: object(nil), ObjectNew: object(c.change)}
			if got := workloads.IgnoreRewording("Failed", "Failed2").Update(e); got != c.want {
				t.Errorf("%s: passed %t, want %t", c.why, got, c.want)
			}
			if diff := cmp.Diff(client.Object(object(c.change)), e.ObjectNew); diff != "" {
				t.Errorf("the object changed:\n%s", diff)
			}
			before, after := object(nil), object(c.change)
			stored.Pack(before)
			stored.Pack(after)
			if got := workloads.IgnoreRewording("Failed", "Failed2").Update(event.UpdateEvent{
				ObjectOld: before, ObjectNew: after,
			}); got != c.want {
				t.Errorf("%s: passed %t of packed objects, want %t", c.why, got, c.want)
			}
		})
	}
}

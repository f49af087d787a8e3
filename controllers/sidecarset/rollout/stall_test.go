package rollout_test

import (
	"testing"
	"time"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/note"
)

// Updates stand after the limit without progress, also once that was reported, and no longer when a pod became ready.
func TestStands(t *testing.T) {
	set := &appsv1beta1.SidecarSet{}
	set.Generation = 3
	start, limited := time.Unix(1_800_000_000, 0), []note.Note{{Code: rollout.NoteUpdateLimited, Text: "4 pods wait"}}
	var stall rollout.Stall
	for _, step := range []struct {
		why         string
		at          time.Duration
		notes       []note.Note
		ready       int32
		want, event bool
	}{
		{"nothing waits", 0, nil, 0, false, false},
		{"a wait begins", time.Second, limited, 0, false, false},
		{"it is not long", time.Minute, limited, 0, false, false},
		{"the limit is over", time.Minute + time.Second, limited, 0, true, true},
		{"it goes on", time.Hour, limited, 0, true, false},
		{"a pod is ready", time.Hour, limited, 1, false, false},
		{"another minute", time.Hour + time.Minute, limited, 1, true, false},
		{"none waits", time.Hour + time.Minute, nil, 1, false, false},
	} {
		now := start.Add(step.at)
		r := rollout.Result{Notes: step.notes}
		r.Status.UpdatedReadyPods = step.ready
		next, text, _ := stall.Next(set, r, now, time.Minute)
		stall = next
		if got := stall.Stands(now, time.Minute); got != step.want || (text != "") != step.event {
			t.Errorf("%s: stands %t, want %t; event %q", step.why, got, step.want, text)
		}
	}
}

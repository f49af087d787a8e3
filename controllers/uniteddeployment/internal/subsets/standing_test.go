package subsets

import (
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/note"
)

// A workload of the cache, whose status is packed, reports why it stands still as one that was read live does.
func TestStandingOfPackedWorkload(t *testing.T) {
	live := stored.Untyped(v1beta1.GroupVersion.WithKind("CloneSet"))
	live.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": workloads.Stalled, "status": "True", "reason": "ImagePullFailed", "message": "web-0: no such image",
	}}}
	cached := live.DeepCopy()
	stored.Pack(cached)
	want := note.Note{Level: note.Blocked, Code: "ImagePullFailed", Text: "web-0: no such image"}
	if got := standing(live); got != want {
		t.Errorf("read live: %+v, want %+v", got, want)
	}
	if got := standing(cached); got != want {
		t.Errorf("of the cache: %+v, want %+v", got, want)
	}
}

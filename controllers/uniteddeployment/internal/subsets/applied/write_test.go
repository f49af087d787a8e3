package applied_test

import (
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
)

func noon(after time.Duration) time.Time {
	return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC).Add(after)
}

// A content is written at once, and again after pauses that grow.
func TestNext(t *testing.T) {
	wanted := func(content string, after time.Duration, lacks ...string) applied.Attempt {
		return applied.Attempt{UID: "1", Content: content, Lacks: lacks, Now: noon(after)}
	}
	first, _ := applied.Write{}.Next(wanted("x", 0, "spec.replicas"))
	written := first.Answered("1", nil)
	changed := first.Answered("1", []string{"spec.replicas"})
	cases := map[string]struct {
		why   string
		last  applied.Write
		wants applied.Attempt
		write bool
		after time.Duration
	}{
		"nothing was written": {"the object lacks a field", applied.Write{}, wanted("x", 0, "spec.replicas"), true, 0},
		"another content":     {"the user has changed the spec", written, wanted("y", 0, "spec.replicas"), true, 0},
		"another object": {
			why:   "it has taken the place of the one that was written",
			last:  first.Answered("2", nil),
			wants: wanted("x", 0, "spec.replicas"),
			write: true,
		},
		"reverted at once": {
			why:   "another writer may do so again and again",
			last:  written,
			wants: wanted("x", 100*time.Millisecond, "spec.replicas"),
			after: 900 * time.Millisecond,
		},
		"reverted after a while": {"the pause is over", written, wanted("x", time.Minute, "spec.replicas"), true, 0},
		"changed at admission": {
			why:   "the next write would be changed in the same way",
			last:  changed,
			wants: wanted("x", time.Hour, "spec.replicas"),
		},
		"changed, and also edited": {
			why:   "another writer has changed a field as well",
			last:  changed,
			wants: wanted("x", time.Hour, "metadata.labels.a", "spec.replicas"),
			write: true,
		},
		"nothing lacks, but a wish": {
			why:   "the attempt has another reason than a field that lacks",
			last:  written,
			wants: wanted("x", time.Hour),
			write: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			next, after := c.last.Next(c.wants)
			if (next != nil) != c.write || after != c.after {
				t.Errorf("%s: write %v, after %s", c.why, next, after)
			}
		})
	}
}

// The pauses double up to the longest one.
func TestPauses(t *testing.T) {
	var last applied.Write
	var at time.Duration
	var pauses []time.Duration
	for range 14 {
		next, after := last.Next(applied.Attempt{UID: "1", Content: "x", Lacks: []string{"spec"}, Now: noon(at)})
		for next == nil {
			at += after
			pauses = append(pauses, after)
			next, after = last.Next(applied.Attempt{UID: "1", Content: "x", Lacks: []string{"spec"}, Now: noon(at)})
		}
		last = next.Answered("1", nil)
	}
	for i, pause := range pauses {
		if want := min(time.Second<<i, applied.Longest); pause != want {
			t.Errorf("pause %d is %s, want %s", i, pause, want)
		}
	}
	if len(pauses) != 13 {
		t.Errorf("%d pauses", len(pauses))
	}
}

package screen_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/demo/screen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares what is shown with a file that a reader can look at.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

const second = time.Second

// rollout is a step as it goes on: begun, under way, a moment later, stopped at the partition, and the next step.
func rollout() []screen.Frame {
	web := func(old, ready, starting int, notes ...screen.Note) screen.Workload {
		w := screen.Workload{
			Name: "CloneSet web", Replicas: 30, Updated: ready + starting, Kept: 30, Notes: notes,
			Revisions: []screen.Revision{{Name: "web:1", Ready: old}},
		}
		if w.Updated > 0 {
			w.Revisions = append(w.Revisions, screen.Revision{Name: "web:2", Ready: ready, Starting: starting})
		}
		return w
	}
	plain := screen.Workload{
		Name: "Deployment plain", Replicas: 30, Updated: 6, Kept: 24,
		Revisions: []screen.Revision{{Name: "web:1", Ready: 24, Leaving: 6}, {Name: "web:2", Starting: 6}},
	}
	limited := screen.Note{Code: "UpdateLimited", Text: "9 instances wait to be updated (unavailable: 6, at most: 6)"}
	kept := screen.Note{Code: "Partition", Text: "15 instances wait at the old revision, as the partition says"}
	blocked := screen.Note{
		Code: "NotInPlace",
		Text: "6 pods: cannot be changed in place: spec.containers[app].env: a container keeps its " +
			"environment, but for values fed from labels and annotations",
	}
	title := "A new image, for half of the pods"
	stopped := web(15, 15, 0, kept)
	stopped.Took = 3100 * time.Millisecond
	idle := plain
	idle.Idle = true
	return []screen.Frame{
		{Step: 2, Steps: 4, Title: title, Elapsed: second / 10, Workloads: []screen.Workload{web(30, 0, 0), plain}},
		{
			Step:      2,
			Steps:     4,
			Title:     title,
			Elapsed:   6 * second / 10,
			Workloads: []screen.Workload{web(24, 0, 6, limited, kept), plain},
		},
		{
			Step:      2,
			Steps:     4,
			Title:     title,
			Elapsed:   22 * second / 10,
			Workloads: []screen.Workload{web(24, 2, 4, limited, kept), plain},
		},
		{Step: 2, Steps: 4, Title: title, Elapsed: 31 * second / 10, Workloads: []screen.Workload{stopped, plain}},
		{
			Step:      3,
			Steps:     4,
			Title:     "What cannot be in place",
			Elapsed:   0,
			Workloads: []screen.Workload{web(15, 9, 6, blocked), idle},
		},
	}
}

func TestLines(t *testing.T) {
	var out strings.Builder
	lines := &screen.Lines{Out: &out}
	for _, f := range rollout() {
		for range 2 { // what is not new is not said
			if err := lines.Draw(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "lines", out.String())
}

func TestSummary(t *testing.T) {
	changes := []screen.Change{
		{Title: "A new image", Rows: []screen.Row{
			{
				Name:      "CloneSet, first half",
				Pods:      30,
				Kept:      30,
				Restarted: 15,
				Took:      3 * second,
				Changed:   15,
				OnPods:    60,
				OnOthers:  8,
				OfNodes:   30,
			},
			{Name: "Deployment", Pods: 30, Started: 30, Took: 10 * second, Changed: 30, OnPods: 60, OnOthers: 301, OfNodes: 120},
		}},
		{Title: "Nothing", Rows: nil},
	}
	golden(t, "summary", screen.Summary(changes))
}

package main

import (
	"runtime/debug"
	"testing"
	"time"
)

// Garbage is collected more often until the start has ended, unless the administrator has decided how often.
func TestCollectOften(t *testing.T) {
	percent := func() int {
		before := debug.SetGCPercent(defaultPercent)
		debug.SetGCPercent(before)
		return before
	}
	for name, c := range map[string]struct {
		env                 string
		set, started, ended int
	}{
		"by default":            {set: defaultPercent, started: startPercent, ended: defaultPercent},
		"GOGC is set":           {env: "80", set: 80, started: 80, ended: 80},
		"GOGC is off":           {env: "off", set: -1, started: -1, ended: -1},
		"GOGC is as by default": {env: "100", set: defaultPercent, started: defaultPercent, ended: defaultPercent},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetGCPercent(c.set)
			defer debug.SetGCPercent(before)
			g := collectOften(func(name string) string {
				return map[string]string{"GOGC": c.env}[name]
			}, time.Millisecond)
			if is := percent(); is != c.started {
				t.Errorf("the heap may grow by %d %% during the start, want %d", is, c.started)
			}
			if err := g.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if is := percent(); is != c.ended {
				t.Errorf("the heap may grow by %d %% after the start, want %d", is, c.ended)
			}
			if g.NeedLeaderElection() {
				t.Error("the other replica waits for leadership")
			}
		})
	}
}

package binaries

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	names := []string{"etcd", "kube-apiserver", "kubectl"}
	cases := map[string]struct {
		p    progress
		want string
	}{
		"the first estimate is the usual time": {
			progress{names: names, now: 1}, "building etcd, program 1 of 3, 0s elapsed, about 4m30s left",
		},
		"the time in the current program counts": {
			progress{names: names, now: 1, elapsed: 30 * time.Second, current: 30 * time.Second},
			"building etcd, program 1 of 3, 30s elapsed, about 4m0s left",
		},
		"a machine of half the speed takes twice as long": {
			progress{names: names, now: 1, done: 1, elapsed: 100 * time.Second},
			"building kube-apiserver, program 2 of 3, 1m40s elapsed, about 7m20s left",
		},
		"a fast machine takes less": {
			progress{names: names, now: 1, done: 1, elapsed: 9 * time.Second},
			"building kube-apiserver, program 2 of 3, 9s elapsed, about 40s left",
		},
		"an estimate that is over is no time": {
			progress{names: names, now: 1, done: 2, elapsed: 500 * time.Second, current: 120 * time.Second},
			"building kubectl, program 3 of 3, 8m20s elapsed, longer than usual",
		},
		"what is downloaded, and how many packages there are": {
			progress{
				names: names, now: 3, modules: 217, packages: 12, all: 1650, elapsed: 90 * time.Second, current: 90 * time.Second,
			},
			"building etcd, kube-apiserver and kubectl, programs 1 to 3 of 3, 217 modules downloaded, " +
				"12 packages of at most 1650 compiled, 1m30s elapsed, about 3m0s left",
		},
		"programs that are built together have one line": {
			progress{names: names, done: 1, now: 2, packages: 812, elapsed: 90 * time.Second},
			"building kube-apiserver and kubectl, programs 2 to 3 of 3, 812 packages compiled, 1m30s elapsed, about 6m36s left",
		},
		"an unknown program has a time, too": {
			progress{now: 1, names: []string{"x"}}, "building x, program 1 of 1, 0s elapsed, about 30s left",
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := c.p.String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A log that is no terminal gets a line at once, and one at each tick.
func TestShowElsewhere(t *testing.T) {
	var log bytes.Buffer
	var counted counts
	counted.packages.Add(7)
	tick := make(chan time.Time)
	stop := show(&log, progress{now: 1, names: []string{"etcd"}}, &counted, tick)
	tick <- time.Time{}
	stop()
	want := "building etcd, program 1 of 1, 0s elapsed, about 50s left\n" +
		"building etcd, program 1 of 1, 7 packages compiled, "
	if got := log.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 2 {
		t.Errorf("%q, want two lines that begin with %q", got, want)
	}
	if interval(&log) != 15*time.Second {
		t.Errorf("a line each %s", interval(&log))
	}
}

// Every program of the catalogue has a usual time of its own.
func TestUsual(t *testing.T) {
	for name := range catalogue() {
		if usual(name) == usual("unknown") && name != "kubectl" {
			t.Errorf("%s has no usual time", name)
		}
	}
}

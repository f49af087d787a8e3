//go:build linux

package process

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStopOfAProgramThatWillNot(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(Spec{
		Name: "stubborn", Dir: dir, Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo up; while :; do sleep 1; done"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Ready(ctx, func(context.Context) error {
		if tail(p.Log()) == "" {
			return errRunning
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := StopRecorded(dir, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if left, err := Records(dir); err != nil || len(left) > 0 {
		t.Errorf("records left: %v, %v", left, err)
	}
}

func TestRecycledPIDIsSpared(t *testing.T) {
	p, err := Start(Spec{Name: "innocent", Dir: t.TempDir(), Path: "/bin/sleep", Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	stale := p.Record
	stale.StartTime += "1" // the process that had this PID before
	if stale.Alive() {
		t.Error("the stale record is alive")
	}
	if err := stale.Stop(0); err != nil {
		t.Error(err)
	}
	if !p.Alive() {
		t.Error("stopping a process that is gone has hit the one with its PID")
	}
	if err := p.Stop(time.Second); err != nil {
		t.Error(err)
	}
}

func TestReadyFailsWhenTheProgramEnds(t *testing.T) {
	p, err := Start(Spec{Name: "brief", Dir: t.TempDir(), Path: "/bin/sh", Args: []string{"-c", "echo because; exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Ready(t.Context(), func(context.Context) error { return errRunning })
	if err == nil || !strings.Contains(err.Error(), "because") {
		t.Errorf("%v, want what the program said", err)
	}
}

func TestBoundProgramDiesWithItsStarter(t *testing.T) {
	if dir := os.Getenv("KRUISEKIT_TEST_STARTER"); dir != "" {
		if _, err := Start(Spec{Name: "bound", Dir: dir, Path: "/bin/sleep", Args: []string{"60"}, Bound: true}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	starter, err := Start(Spec{
		Name: "starter", Dir: t.TempDir(), Path: "/proc/self/exe",
		Args: []string{"-test.run=^" + t.Name() + "$"}, Env: []string{"KRUISEKIT_TEST_STARTER=" + dir},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-starter.Done()
	records, err := Records(dir)
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, %v; want one", records, err)
	}
	if !records[0].gone(time.Minute) {
		t.Errorf("%s outlives its starter", strconv.Itoa(records[0].PID))
	}
}

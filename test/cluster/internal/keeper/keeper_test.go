//go:build nightly && linux

package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/internal/keeper"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

const (
	// keep makes the test binary a keeper of the directory that it names.
	keep = "KRUISEKIT_TEST_KEEP"

	idle     = time.Second
	deadline = 2 * time.Minute
)

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if dir := os.Getenv(keep); dir != "" {
		os.Exit(report(runKeeper(ctx, dir)))
	}
	os.Exit(m.Run())
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runKeeper(ctx context.Context, dir string) error {
	cache, err := binaries.Open()
	if err != nil {
		return err
	}
	assets, err := cache.Assets()
	if err != nil {
		return err
	}
	return keeper.Run(ctx, keeper.Config{Dir: dir, Idle: idle, Plane: plane.Config{Programs: assets}})
}

// launch starts this binary as a keeper.
func launch(dir string) func() (*process.Process, error) {
	return func() (*process.Process, error) {
		return process.Start(process.Spec{
			Name: "keeper", Dir: dir, Path: "/proc/self/exe", Env: []string{keep + "=" + dir},
		})
	}
}

func attach(t *testing.T, dir string) *keeper.Lease {
	t.Helper()
	cache, err := binaries.Open()
	if err == nil {
		_, err = cache.Assets()
	}
	if errors.Is(err, binaries.ErrMissing) && os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") != "1" {
		t.Skip(err)
	}
	lease, err := keeper.Attach(t.Context(), dir, launch(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lease.Release)
	return lease
}

// programs of the plane and its keeper by name.
func programs(t *testing.T, dir string) map[string]process.Record {
	t.Helper()
	all := map[string]process.Record{}
	for _, dir := range []string{dir, plane.RecordDir(filepath.Join(dir, "plane"))} {
		records, err := process.Records(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			all[r.Name] = r
		}
	}
	return all
}

func ended(t *testing.T, all map[string]process.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	err := process.Poll(ctx, func(context.Context) error {
		for _, r := range all {
			if r.Alive() {
				return fmt.Errorf("%s (%d) runs", r.Name, r.PID)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPlaneIsSharedAndEndsAfterItsLastUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := attach(t, dir), attach(t, dir)
	if !one.Started || two.Started {
		t.Errorf("started by the first %t and by the second %t, want true and false", one.Started, two.Started)
	}
	all := programs(t, dir)
	if len(all) != 3 {
		t.Fatalf("programs %v, want a keeper, etcd and kube-apiserver", all)
	}
	one.Release()
	if kept, err := keeper.Kept(dir); !kept || err != nil {
		t.Errorf("kept %t (%v) while somebody uses it, want true", kept, err)
	}
	two.Release()
	ended(t, all)
	if again := attach(t, dir); !again.Started {
		t.Error("the plane that ended was not started again")
	}
}

func TestNextUserOvercomesAnyKill(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"keeper", "etcd", "kube-apiserver"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := attach(t, dir)
			all := programs(t, dir)
			if err := all[victim].Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			ended(t, all)
			second := attach(t, dir)
			if !second.Started {
				t.Error("the plane was not started again")
			}
			first.Release()
			if kept, err := keeper.Kept(dir); !kept || err != nil {
				t.Errorf("kept %t (%v), want true", kept, err)
			}
			all = programs(t, dir)
			second.Release()
			ended(t, all)
		})
	}
}

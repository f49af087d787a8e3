//go:build linux

package nodes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

func TestChrooted(t *testing.T) {
	busybox, err := os.ReadFile(packages.Busybox)
	if err != nil || os.Geteuid() != 0 {
		t.Skipf("a chroot needs root and %s", packages.Busybox)
	}
	dir := t.TempDir()
	for _, sub := range []string{"proc", filepath.Dir(packages.Busybox)} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, packages.Busybox), busybox, 0o700); err != nil {
		t.Fatal(err)
	}
	if chrooted() {
		t.Error("the test runs in a chroot")
	}
	// The mount goes with the namespace.
	if !chrooted("unshare", "--mount", "sh", "-c", `mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"`, dir) {
		t.Error("a chroot is not found")
	}
}

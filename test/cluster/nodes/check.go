//go:build linux

package nodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster/packages"
)

// ErrUnavailable says that this machine cannot run real nodes.
var ErrUnavailable = errors.New("not available on this machine")

// Check returns an error that wraps ErrUnavailable and says what is missing.
func (c Config) Check() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("real nodes need root: %w", ErrUnavailable)
	}
	// The programs are built: the packages that build them may be absent.
	if absent := packages.Missing(packages.Of(packages.All(), packages.Nodes)); len(absent) > 0 {
		return fmt.Errorf("real nodes need these packages: %s: %w", packages.Names(absent), ErrUnavailable)
	}
	if chrooted() {
		return fmt.Errorf("nodes have mounts of their own, which a process in a chroot cannot enter: use a container: %w",
			ErrUnavailable)
	}
	for _, program := range c.Programs {
		for _, own := range []string{"/proc", "/run", "/var/lib", "/var/log"} {
			if strings.HasPrefix(program, own+"/") {
				return fmt.Errorf("nodes have a %s of their own, where they do not find %s: move the cache: %w",
					own, program, ErrUnavailable)
			}
		}
	}
	return nil
}

// chrooted reports whether the root of this process is not the root of its mount namespace, where nsenter and runc go.
// prefix is a command that runs another one.
func chrooted(prefix ...string) bool {
	root := func(enter ...string) (string, error) {
		command := slices.Concat(prefix, enter, []string{packages.Busybox, "stat", "-c", "%d:%i", "/"})
		output, err := exec.Command(command[0], command[1:]...).Output() //nolint:noctx // constant, and short
		return string(output), err
	}
	own, err := root()
	if err != nil {
		return false
	}
	ofNamespace, err := root(packages.Busybox, "nsenter", "--mount=/proc/self/ns/mnt")
	return err == nil && own != ofNamespace
}

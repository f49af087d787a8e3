//go:build linux

package nodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnavailable says that this machine cannot run real nodes.
var ErrUnavailable = errors.New("not available on this machine")

// Busybox is the statically linked program that test images consist of.
const Busybox = "/bin/busybox"

// Check returns an error that wraps ErrUnavailable and says what is missing.
func (c Config) Check() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("real nodes need root: %w", ErrUnavailable)
	}
	var missing []string
	for program, debian := range map[string]string{
		"ip": "iproute2", "iptables": "iptables", "nsenter": "util-linux", "setpriv": "util-linux", "mount": "mount",
		"busybox": "busybox-static",
	} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, debian)
		}
	}
	if cniPlugins() == "" {
		missing = append(missing, "containernetworking-plugins")
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		missing = slices.Compact(missing)
		return fmt.Errorf("real nodes need these packages: %s: %w", strings.Join(missing, " "), ErrUnavailable)
	}
	if _, err := os.Stat(Busybox); err != nil {
		return fmt.Errorf("real nodes need %s (package busybox-static): %w", Busybox, ErrUnavailable)
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
		command := slices.Concat(prefix, enter, []string{Busybox, "stat", "-c", "%d:%i", "/"})
		output, err := exec.Command(command[0], command[1:]...).Output() //nolint:noctx // constant, and short
		return string(output), err
	}
	own, err := root()
	if err != nil {
		return false
	}
	ofNamespace, err := root(Busybox, "nsenter", "--mount=/proc/self/ns/mnt")
	return err == nil && own != ofNamespace
}

// cniPlugins is the directory of the network plugins.
func cniPlugins() string {
	for _, dir := range []string{"/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"} {
		found := true
		for _, plugin := range []string{"bridge", "host-local", "loopback"} {
			_, err := os.Stat(filepath.Join(dir, plugin))
			found = found && err == nil
		}
		if found {
			return dir
		}
	}
	return ""
}

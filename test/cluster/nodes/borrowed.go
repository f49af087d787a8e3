//go:build linux

package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// hostpath is where kube-controller-manager's hostpath provisioner, which cannot be configured, makes volumes.
const hostpath = "/tmp/hostpath_pv"

// borrowed is what the machine had before, to be given back.
type borrowed struct {
	Sysctls map[string]string `json:"sysctls"`
	// Hostpath says that the directory for volumes was there before.
	Hostpath bool `json:"hostpath"`
}

// inotifyInstances limits the inotify instances of a user. All nodes share the user, and a container runtime that gets
// none does not serve.
const inotifyInstances, enoughInstances = "fs/inotify/max_user_instances", 1024

// sysctls that change: the first for routing between the nodes, the second for their number, the others by kubelets,
// which insist on their values.
func sysctls() []string {
	return []string{
		"net/ipv4/ip_forward", inotifyInstances, "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
		"kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

func sysctlFile(name string) string { return filepath.Join("/proc/sys", name) }

// borrow notes down what will change.
func (c Config) borrow() error {
	b := borrowed{Sysctls: map[string]string{}}
	for _, name := range sysctls() {
		value, err := os.ReadFile(sysctlFile(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read sysctl: %w", err)
		}
		b.Sysctls[name] = strings.TrimSpace(string(value))
	}
	_, err := os.Stat(hostpath)
	b.Hostpath = err == nil
	content, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("note down the sysctls: %w", err)
	}
	if err := os.WriteFile(c.borrowed(), content, 0o600); err != nil {
		return fmt.Errorf("note down the sysctls: %w", err)
	}
	return nil
}

// giveBack restores what has changed. It does nothing twice.
func (c Config) giveBack() error {
	content, err := os.ReadFile(c.borrowed())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the sysctls noted down: %w", err)
	}
	var b borrowed
	if err := json.Unmarshal(content, &b); err != nil {
		return fmt.Errorf("read the sysctls noted down: %w", err)
	}
	var failures []error
	for name, value := range b.Sysctls {
		// Writing the same value may have effects too: net/ipv4/ip_forward resets others.
		if now, err := os.ReadFile(sysctlFile(name)); err == nil && strings.TrimSpace(string(now)) != value {
			failures = append(failures, setSysctl(name, value))
		}
	}
	if !b.Hostpath {
		failures = append(failures, os.RemoveAll(hostpath))
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("give back: %w", err)
	}
	if err := os.Remove(c.borrowed()); err != nil {
		return fmt.Errorf("give back: %w", err)
	}
	return nil
}

// raiseLimits raises the limits of the machine that all nodes share.
func raiseLimits() error {
	content, err := os.ReadFile(sysctlFile(inotifyInstances))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read sysctl: %w", err)
	}
	if now, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil && now >= enoughInstances {
		return nil
	}
	return setSysctl(inotifyInstances, strconv.Itoa(enoughInstances))
}

func setSysctl(name, value string) error {
	if err := os.WriteFile(sysctlFile(name), []byte(value), 0o600); err != nil {
		return fmt.Errorf("set sysctl %s: %w", name, err)
	}
	return nil
}

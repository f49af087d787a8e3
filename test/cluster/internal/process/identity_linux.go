package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

func attributes(spec Spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Cloneflags: spec.Namespaces}
	if spec.Bound {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

// startTime identifies a process among those that ever had its PID, or is empty when there is none but a zombie.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field, the name in parentheses, may contain anything. The state is the third and the start the 22nd.
	_, rest, found := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	field := strings.Fields(rest)
	if !found || len(field) < 20 || field[0] == "Z" || field[0] == "X" {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + field[19]
}

//go:build !linux

package process

import (
	"os"
	"strconv"
	"syscall"
)

func attributes(Spec) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// startTime cannot detect a recycled PID here. That is good enough: only private planes run here, whose programs are
// children of this process until it has waited for them.
func startTime(pid int) string {
	if p, err := os.FindProcess(pid); err != nil || p.Signal(syscall.Signal(0)) != nil {
		return ""
	}
	return strconv.Itoa(pid)
}

package process

import (
	"os"
	"strconv"
	"syscall"
)

func attributes(Spec) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// startTime cannot detect a recycled PID here; see identity_other.go.
func startTime(pid int) string {
	p, err := os.FindProcess(pid)
	if err != nil {
		return ""
	}
	_ = p.Release()
	return strconv.Itoa(pid)
}

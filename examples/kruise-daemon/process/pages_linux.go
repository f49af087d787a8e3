package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// settled is how long after its caches are filled a daemon has done what only a start needs.
const settled = 10 * time.Second

// lean gives memory back after the start. Most of what a daemon has resident then are pages of its program's
// file: those with which some hundred packages prepared for kinds that no daemon ever sees. The kernel would drop them
// where memory is short; a node has better use for them at once. What is needed after all is read again.
type lean struct{ caches cache.Cache }

// Start works once.
func (l lean) Start(ctx context.Context) error {
	if !l.caches.WaitForCacheSync(ctx) {
		return nil // it ends
	}
	timer := time.NewTimer(settled)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	}
	debug.FreeOSMemory()
	if err := dropProgram(); err != nil {
		log.FromContext(ctx).V(1).Info("Pages of the program stay in memory", "reason", err.Error())
	}
	return nil
}

// dropProgram drops the pages of the program's file that are in memory as they are in the file.
func dropProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find program: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("find its memory: %w", err)
	}
	defer func() { _ = maps.Close() }()
	var failures []error
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		// start-end permissions offset device inode path
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != program || strings.Contains(fields[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, startErr := strconv.ParseUint(from, 16, 64)
		end, endErr := strconv.ParseUint(to, 16, 64)
		if err := errors.Join(startErr, endErr); err != nil {
			return fmt.Errorf("read its memory: %w", err)
		}
		failures = append(failures, drop(uintptr(start), uintptr(end-start)))
	}
	return errors.Join(append(failures, lines.Err())...)
}

// drop has the kernel take pages out of memory, or, where it does not know how, at least out of what counts as the
// process's.
func drop(start, length uintptr) error {
	_, _, failed := unix.RawSyscall(unix.SYS_MADVISE, start, length, unix.MADV_PAGEOUT)
	if failed == unix.EINVAL {
		_, _, failed = unix.RawSyscall(unix.SYS_MADVISE, start, length, unix.MADV_DONTNEED)
	}
	if failed != 0 {
		return os.NewSyscallError("madvise", failed)
	}
	return nil
}

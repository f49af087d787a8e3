package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// usual is how long each build takes on two cores, in seconds: what an estimate begins with.
func usual(name string) float64 {
	seconds := map[string]float64{
		"etcd": 50, "kube-apiserver": 190, "kubectl": 30, "kube-controller-manager": 90, "kube-scheduler": 20,
		"kube-controllers": 5, "kubelet": 60,
		"kwok": 115, "containerd": 60, "containerd-shim-runc-v2": 10, "ctr": 5, "runc": 15, "crane": 20, "pause": 1,
		"csi-provisioner": 60, "csi-resizer": 15, "csi-hostdir": 5,
	}
	if s, known := seconds[name]; known {
		return s
	}
	return 30
}

// progress is how far a build of several programs is.
type progress struct {
	// names of the programs to build, in their order, done how many are built, and now how many are being built.
	names     []string
	done, now int
	// packages is how many the compiler has taken on.
	packages int64
	// elapsed since the first began, and current since the one that is being built did.
	elapsed, current time.Duration
}

// left estimates the rest: the usual times, stretched by what the finished programs took.
func (p progress) left() time.Duration {
	var finished, rest float64
	for i, name := range p.names {
		if i < p.done {
			finished += usual(name)
		} else {
			rest += usual(name)
		}
	}
	pace := 1.0
	if finished > 0 {
		pace = (p.elapsed - p.current).Seconds() / finished
	}
	return max(0, time.Duration(rest*pace*float64(time.Second))-p.current)
}

// String describes the programs that are being built.
func (p progress) String() string {
	number := fmt.Sprintf("program %d", p.done+1)
	if p.now > 1 {
		number = fmt.Sprintf("programs %d to %d", p.done+1, p.done+p.now)
	}
	compiled := ""
	if p.packages > 0 {
		compiled = fmt.Sprintf("%d packages compiled, ", p.packages)
	}
	return fmt.Sprintf("building %s, %s of %d, %s%s elapsed, about %s left",
		list(p.names[p.done:p.done+p.now]), number, len(p.names), compiled, rough(p.elapsed), rough(p.left()))
}

// list is names as a sentence has them.
func list(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// rough is a duration in minutes and seconds; from ten minutes on, in minutes.
func rough(d time.Duration) string {
	if d >= 10*time.Minute {
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return d.Round(time.Second).String()
}

// clearLine returns to the start of a terminal's line and empties it.
const clearLine = "\r\x1b[K"

// show writes the progress at once and, on a terminal, again each second until stop is called. Elsewhere it is one
// line. Calls of compiled count packages.
func show(ctx context.Context, log io.Writer, p progress, began time.Time) (compiled, stop func()) {
	if !isTerminal(log) {
		fmt.Fprintln(log, p)
		return func() {}, func() {}
	}
	var packages atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			p.elapsed, p.current, p.packages = time.Since(began), time.Since(start), packages.Load()
			fmt.Fprint(log, clearLine, p)
			select {
			case <-ctx.Done():
				fmt.Fprint(log, clearLine)
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { packages.Add(1) }, func() {
		cancel()
		<-ended
	}
}

func isTerminal(log io.Writer) bool {
	file, is := log.(*os.File)
	return is && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

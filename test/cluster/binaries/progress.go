package binaries

import (
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
	// modules, packages and all are those of counts.
	modules, packages, all int64
	// elapsed since the first began, and current since the one that is being built did.
	elapsed, current time.Duration
}

// counts are how far a batch of programs is that are built together.
type counts struct {
	// modules is how many were downloaded, packages how many the compiler has taken on, and all how many packages the
	// programs have, compiled before or not; zero where that is unknown.
	modules, packages, all atomic.Int64
}

// line counts a line of `go build -v`.
func (c *counts) line(text string) {
	switch {
	case strings.HasPrefix(text, "go: downloading "):
		c.modules.Add(1)
	case isPackage(text):
		c.packages.Add(1)
	}
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
	counted := ""
	if p.modules > 0 {
		counted += fmt.Sprintf("%d modules downloaded, ", p.modules)
	}
	switch {
	case p.packages > 0 && p.all > 0:
		counted += fmt.Sprintf("%d packages of at most %d compiled, ", p.packages, p.all)
	case p.packages > 0:
		counted += fmt.Sprintf("%d packages compiled, ", p.packages)
	}
	left := "longer than usual"
	if d := p.left(); d > 0 {
		left = "about " + rough(d) + " left"
	}
	return fmt.Sprintf("building %s, %s of %d, %s%s elapsed, %s",
		list(p.names[p.done:p.done+p.now]), number, len(p.names), counted, rough(p.elapsed), left)
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

// period is how often progress is written where there is no terminal.
const period = 15 * time.Second

// show writes the progress at once and again at each tick, until stop is called. On a terminal it is one line that
// changes.
func show(log io.Writer, p progress, c *counts, tick <-chan time.Time) (stop func()) {
	start, stopped, ended := time.Now(), make(chan struct{}), make(chan struct{})
	before, after, elapsed := "", "\n", p.elapsed
	if isTerminal(log) {
		before, after = clearLine, ""
	}
	fmt.Fprint(log, before, p, after)
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopped:
				fmt.Fprint(log, before)
				return
			case <-tick:
				p.current = time.Since(start)
				p.elapsed = elapsed + p.current
				p.modules, p.packages, p.all = c.modules.Load(), c.packages.Load(), c.all.Load()
				fmt.Fprint(log, before, p, after)
			}
		}
	}()
	return func() {
		close(stopped)
		<-ended
	}
}

// interval of the progress in a log.
func interval(log io.Writer) time.Duration {
	if isTerminal(log) {
		return time.Second
	}
	return period
}

func isTerminal(log io.Writer) bool {
	file, is := log.(*os.File)
	return is && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// Command bench measures the manager against the limit: what a plain client reaches that makes the same writes at the
// same server in the same run. It starts a control plane with simulated nodes for each scenario, and the manager as a
// process of its own.
//
//	make bench                  # all scenarios in full, about 80 minutes on 2 slow cores
//	make bench BENCH=quick      # all of them small
//	make bench BENCH=a,c        # some of them in full
//	make bench BENCH=quick,a    # some of them small
//
// It writes report.md and profiles into bin/bench. docs/benchmarks.md explains the figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C does not wait
	which := flag.String("which", "full", "full, quick, or scenarios by name, separated by commas")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := run(ctx, *which); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// scenario is one part of the benchmark, on a control plane of its own.
type scenario struct {
	name, title string
	// quick and full are how many nodes are simulated.
	quick, full int
	run         func(context.Context, *env) error
}

func scenarios() []scenario {
	return []scenario{
		{name: "a", title: "Rollouts of one workload", quick: 100, full: 1000, run: rollouts},
		{name: "b", title: "Many workloads at once", quick: 100, full: 1000, run: many},
		{name: "c", title: "Start, memory, idle and takeover", quick: 100, full: 1000, run: starts},
		{name: "d", title: "Pull jobs on many nodes", quick: 100, full: 1000, run: pulls},
		{name: "e", title: "Admission of new pods", quick: 10, full: 10, run: admission},
		{name: "f", title: "Evictions under budgets", quick: 50, full: 100, run: evictions},
		{name: "g", title: "The daemon of a node", quick: 3, full: 3, run: node},
	}
}

// choose returns the scenarios that the user asks for, and whether they are quick.
func choose(which string) (chosen []scenario, quick bool, err error) {
	all := scenarios()
	for name := range strings.SplitSeq(which, ",") {
		at := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		switch {
		case name == "quick":
			quick = true
		case name == "full" || name == "":
		case at < 0:
			return nil, false, fmt.Errorf("no scenario %q", name)
		default:
			chosen = append(chosen, all[at])
		}
	}
	if len(chosen) == 0 {
		chosen = all
	}
	return chosen, quick, nil
}

func run(ctx context.Context, which string) error {
	chosen, quick, err := choose(which)
	if err != nil {
		return err
	}
	out, err := filepath.Abs(filepath.Join("bin", "bench"))
	if err != nil {
		return fmt.Errorf("find directory: %w", err)
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	programs, err := prepare(ctx, out)
	if err != nil {
		return err
	}
	size := "full"
	if quick {
		size = "quick"
	}
	r := &report{}
	r.linef("Run of %s, %s sizes, on %s.", time.Now().UTC().Format("2006-01-02 15:04 MST"), size, machine(ctx))
	for _, s := range chosen {
		fmt.Printf("%s: %s\n", strings.ToUpper(s.name), s.title)
		r.linef("\n## %s: %s", strings.ToUpper(s.name), s.title)
		e := &env{programs: programs, out: out, quick: quick, report: r}
		if err := one(ctx, s, e); err != nil {
			return fmt.Errorf("scenario %s: %w", s.name, err)
		}
		// After each, so that a run that is interrupted has shown what it measured.
		if err := r.write(out); err != nil {
			return err
		}
	}
	fmt.Println("wrote", filepath.Join(out, "report.md"))
	return nil
}

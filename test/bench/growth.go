package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// growth shows how the cost of a pass grows with its pods. It needs no cluster: it runs the Go benchmarks of the
// reconciler of CloneSets, whose cache and API server take no time.
func growth(ctx context.Context, e *env) error {
	times := fmt.Sprintf("%dx", e.pick(5, 30))
	cmd := exec.CommandContext(ctx, "go", "test", "./controllers/cloneset", "-run", "^$", "-bench", "^BenchmarkReconcile$",
		"-benchmem", "-benchtime", times)
	cmd.Dir = e.root
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run benchmarks: %w\n%s", err, output)
	}
	table := e.report.Table("One pass over a CloneSet", "pass", "pods", "ms", "us/pod", "allocations/pod", "bytes/pod")
	for _, r := range results(output) {
		pods := float64(r.pods)
		table.Add(r.name, fmt.Sprint(r.pods), fmt.Sprintf("%.2f", r.ns/1e6), fmt.Sprintf("%.2f", r.ns/1000/pods),
			fmt.Sprintf("%.2f", r.allocations/pods), fmt.Sprintf("%.0f", r.bytes/pods))
	}
	if len(table.Rows) == 0 {
		return fmt.Errorf("no benchmark ran:\n%s", output)
	}
	return nil
}

// result is a line of a Go benchmark.
type result struct {
	name                   string
	pods                   int
	ns, bytes, allocations float64
}

// results reads the lines "BenchmarkReconcile/idle/1000-2  30  400 ns/op  16 B/op  1 allocs/op".
func results(output []byte) (all []result) {
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || !strings.HasPrefix(fields[0], "BenchmarkReconcile/") {
			continue
		}
		parts := strings.Split(fields[0], "/")
		size, _, _ := strings.Cut(parts[len(parts)-1], "-")
		r := result{name: strings.ReplaceAll(parts[1], "_", " ")}
		r.pods, _ = strconv.Atoi(size)
		r.ns, _ = strconv.ParseFloat(fields[2], 64)
		r.bytes, _ = strconv.ParseFloat(fields[4], 64)
		r.allocations, _ = strconv.ParseFloat(fields[6], 64)
		if r.pods > 0 {
			all = append(all, r)
		}
	}
	return all
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has taken so far, and what it has asked of the API server.
type usage struct {
	at  time.Time
	cpu time.Duration
	// rss is the resident memory now, peak the most there was, in bytes.
	rss, peak int64
	// writes are requests to the API server, passes are reconciles.
	writes, conflicts, passes float64
}

// tick is the unit of CPU times in /proc on Linux.
const tick = 10 * time.Millisecond

// cpuOf is the CPU time that a process has taken, in user and in system mode.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int
	for _, one := range fields[11:13] {
		n, err := strconv.Atoi(one)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// memoryOf is the resident memory of a process and its peak, in bytes.
func memoryOf(pid int) (rss, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read memory: %w", err)
	}
	read := func(name string) int64 {
		_, after, _ := strings.Cut(string(status), name+":")
		kib, _ := strconv.ParseInt(strings.Fields(after + " 0")[0], 10, 64)
		return kib << 10
	}
	return read("VmRSS"), read("VmHWM"), nil
}

// used asks a replica.
func (r *replica) used(ctx context.Context) (u usage, err error) {
	pid := r.process.Process.Pid
	if u.cpu, err = cpuOf(pid); err != nil {
		return u, err
	}
	if u.rss, u.peak, err = memoryOf(pid); err != nil {
		return u, err
	}
	body, err := r.get(ctx, 2, "/metrics")
	if err != nil {
		return u, err
	}
	u.at = time.Now()
	for _, s := range samples(body, "rest_client_requests_total") {
		if s.labels["method"] != "GET" {
			u.writes += s.value
		}
		if s.labels["code"] == "409" {
			u.conflicts += s.value
		}
	}
	for _, s := range samples(body, "controller_runtime_reconcile_total") {
		u.passes += s.value
	}
	return u, nil
}

// sample is a value of a metric.
type sample struct {
	labels map[string]string
	value  float64
}

var pair = regexp.MustCompile(`(\w+)="([^"]*)"`)

// samples returns those of a metric in the text format.
func samples(text []byte, metric string) (all []sample) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), metric)
		if !is || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		at := strings.LastIndexByte(rest, ' ')
		value, err := strconv.ParseFloat(rest[at+1:], 64)
		if err != nil {
			continue
		}
		s := sample{map[string]string{}, value}
		for _, match := range pair.FindAllStringSubmatch(rest[:at], -1) {
			s.labels[match[1]] = match[2]
		}
		all = append(all, s)
	}
	return all
}

// machine describes where and of what the figures are.
func machine(ctx context.Context) string {
	first := func(file, key string) string {
		text, _ := os.ReadFile(file)
		_, after, _ := strings.Cut(string(text), key)
		line, _, _ := strings.Cut(strings.TrimLeft(after, " \t:"), "\n")
		return strings.TrimSpace(line)
	}
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	return fmt.Sprintf("%d cores of %s, %s memory, %s; %s, commit %s", runtime.NumCPU(),
		first("/proc/cpuinfo", "model name"), first("/proc/meminfo", "MemTotal"), first("/proc/version", "Linux version"),
		runtime.Version(), bytes.TrimSpace(commit))
}

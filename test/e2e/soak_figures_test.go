//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// soakFigures are those of one process at one moment.
type soakFigures struct {
	role                                  string
	age                                   time.Duration
	memory, heap, goroutines, cpu, passes float64
	// errors are sums of the process by what counts them: passes that failed, panics, answers of webhooks.
	errors map[string]float64
}

// measure reads the figures of all processes and records them. A process that does not answer at this moment is left
// out.
func (s *soak) measure(ctx context.Context, moment string) map[string]soakFigures {
	all := map[string]soakFigures{}
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(system)); err != nil {
		return all
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		if n := pod.Status.ContainerStatuses[0].RestartCount; n > 0 {
			s.report.crashed(pod.Name, n)
		}
		port := "8080"
		if pod.Labels["control-plane"] == "daemon" {
			port = "10221"
		}
		text, err := s.Kubectl(ctx, "get", "--raw", "/api/v1/namespaces/"+system+"/pods/"+pod.Name+":"+port+"/proxy/metrics")
		if err != nil {
			continue
		}
		all[pod.Name] = figuresOf(text, port == "10221")
	}
	s.report.add(moment, all)
	return all
}

// logged counts what a process has logged as errors, by message, with an example of each.
func (s *soak) logged(ctx context.Context, pod string) {
	text, err := s.Kubectl(ctx, "logs", "-n", system, pod)
	if err != nil {
		s.report.count("logs not read", pod)
		return
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, " level=ERROR ") {
			s.report.example(strings.TrimSpace(field(line, "msg")+" "+field(line, "controller")), strings.TrimSpace(line))
		}
	}
}

// field is the value of a key in a line of a log.
func field(line, key string) string {
	_, rest, found := strings.Cut(line, " "+key+"=")
	if !found {
		return ""
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		return strings.Trim(quoted, `"`)
	}
	word, _, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(word)
}

// sample measures at every interval.
func (s *soak) sample(ctx context.Context, interval time.Duration) {
	for pause(ctx, interval) {
		s.measure(ctx, "")
	}
}

// figuresOf reads what a process serves as its metrics.
func figuresOf(text string, daemon bool) soakFigures {
	f := soakFigures{role: "follower", errors: map[string]float64{}}
	if daemon {
		f.role = "daemon"
	}
	var started float64
	single := map[string]*float64{
		"process_resident_memory_bytes": &f.memory, "go_memstats_heap_inuse_bytes": &f.heap, "go_goroutines": &f.goroutines,
		"process_cpu_seconds_total":  &f.cpu,
		"process_start_time_seconds": &started,
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, number, found := strings.Cut(lines.Text(), " ")
		if i := strings.LastIndex(lines.Text(), "} "); i >= 0 {
			series, number = lines.Text()[:i+1], lines.Text()[i+2:]
		}
		value, err := strconv.ParseFloat(number, 64)
		if !found || err != nil || strings.HasPrefix(series, "#") {
			continue
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		switch {
		case single[name] != nil:
			*single[name] = value
		case name == "kruise_manager_is_leader" && value == 1:
			f.role = "leader"
		case name == "controller_runtime_reconcile_total":
			f.passes += value
		case value > 0 && isError(name, labels):
			f.errors[name+"{"+labels+"}"] += value
		}
	}
	f.age = time.Since(time.Unix(int64(started), 0))
	return f
}

// isError reports whether a series counts what should not happen.
func isError(name, labels string) bool {
	switch name {
	case "controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_panics_total",
		"controller_runtime_terminal_reconcile_errors_total", "controller_runtime_webhook_panics_total",
		"kruisekit_webhook_refused_total":
		return true
	case "controller_runtime_webhook_requests_total":
		return !strings.Contains(labels, `code="200"`)
	case "rest_client_requests_total":
		return strings.Contains(labels, `code="5`) || strings.Contains(labels, `code="403"`) ||
			strings.Contains(labels, `code="422"`)
	}
	return false
}

// growth is by how much errors of a process have grown since an earlier moment.
func growth(from, to map[string]float64) map[string]float64 {
	grown := maps.Clone(to)
	for name, value := range from {
		if grown[name] -= value; grown[name] <= 0 {
			delete(grown, name)
		}
	}
	return grown
}

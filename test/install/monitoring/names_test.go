package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// known is a metric and its labels; nil labels are not checked.
type known map[string][]string

// foreign are the metrics of other programs: of controller-runtime, client-go and the Go runtime in our processes, of
// kube-state-metrics, and of kubelets.
var foreign = known{
	"controller_runtime_reconcile_errors_total":  {"controller"},
	"controller_runtime_reconcile_time_seconds":  {"controller"},
	"controller_runtime_reconcile_total":         {"controller", "result"},
	"controller_runtime_webhook_latency_seconds": {"webhook"},
	"controller_runtime_webhook_requests_total":  {"webhook", "code"},
	"rest_client_requests_total":                 {"code", "method", "host"},
	"workqueue_depth":                            {"name", "controller", "priority"},
	"process_cpu_seconds_total":                  {},
	"process_resident_memory_bytes":              {},

	"kube_deployment_status_replicas_ready":    {"deployment"},
	"kube_pod_container_status_restarts_total": {"container"},
	"kube_pod_status_ready":                    {"condition"},
	"container_cpu_usage_seconds_total":        {"container"},
	"container_memory_working_set_bytes":       {"container"},
}

// scraped are the labels that Prometheus adds, and those of the monitors.
var scraped = []string{"__name__", "job", "namespace", "pod", "node", "instance", "le"}

// metrics are all that may be asked for: those of the table in docs/monitoring.md, which hack/metrics takes from the code,
// those of objects, and the foreign ones.
func metrics(t *testing.T) known {
	t.Helper()
	all := known{}
	for name, labels := range foreign {
		all[name] = labels
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (?:counter|gauge|histogram) \\| (.*?) \\|")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		all[m[1]] = []string{}
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[2], -1) {
			all[m[1]] = append(all[m[1]], label[1])
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d metrics are known", len(all))
	}
	for _, r := range objectMetrics(t) {
		for _, m := range r.Metrics {
			all[r.MetricNamePrefix+"_"+m.Name] = append(m.labels(), keysOf(r.LabelsFromPath)...)
		}
	}
	return all
}

func keysOf(m map[string][]string) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// check says what an expression asks for that does not exist.
func (k known) check(expression string) error {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return err
	}
	var wrong []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			wrong = append(wrong, k.selector(n.Name, n.LabelMatchers)...)
		case *parser.AggregateExpr:
			var of []string
			parser.Inspect(n.Expr, func(inner parser.Node, _ []parser.Node) error {
				if s, ok := inner.(*parser.VectorSelector); ok {
					labels, _ := k.of(s.Name)
					of = append(of, labels...)
				}
				return nil
			})
			for _, label := range n.Grouping {
				if !slices.Contains(of, label) && !slices.Contains(scraped, label) {
					wrong = append(wrong, "label "+label)
				}
			}
		}
		return nil
	})
	if len(wrong) > 0 {
		return fmt.Errorf("%s asks for what does not exist: %v", expression, wrong)
	}
	return nil
}

// of returns the labels of a metric, of the series of histograms too.
func (k known) of(name string) ([]string, bool) {
	for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
		if labels, ok := k[strings.TrimSuffix(name, suffix)]; ok && strings.HasSuffix(name, suffix) {
			return labels, true
		}
	}
	return nil, false
}

func (k known) selector(name string, matchers []*labels.Matcher) []string {
	of, ok := k.of(name)
	if !ok {
		return []string{name}
	}
	var wrong []string
	for _, m := range matchers {
		if !slices.Contains(of, m.Name) && !slices.Contains(scraped, m.Name) {
			wrong = append(wrong, name+"{"+m.Name+"}")
		}
	}
	return wrong
}

func TestCheckFindsWhatDoesNotExist(t *testing.T) {
	all := metrics(t)
	for expression, want := range map[string]string{
		"sum(kruise_manager_is_leader)":                              "",
		"sum(kruise_manager_is_leading)":                             "kruise_manager_is_leading",
		"kruisekit_workloads_stalled{state=\"True\"}":                "kruisekit_workloads_stalled{state}",
		"sum by (who) (kruisekit_workloads_stalled)":                 "label who",
		"rate(kruise_daemon_image_pulls_total[5m]) > ":               "unexpected end of input",
		"kruise_daemon_image_pull_duration_seconds_bucket{le=\"1\"}": "",
	} {
		err := all.check(expression)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "monitoring", path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

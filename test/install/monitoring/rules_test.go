package monitoring

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

func rules(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	var object struct{ Spec map[string]any }
	read(t, "rules.yaml", &object)
	text, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() || len(groups.Groups) == 0 {
		t.FailNow()
	}
	return groups
}

// Rules are read as Prometheus reads them, ask for metrics that exist, and each has its page.
func TestRules(t *testing.T) {
	all := metrics(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range rules(t).Groups {
		for _, rule := range group.Rules {
			if err := all.check(rule.Expr); err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
			if !strings.Contains(string(page), "| `"+rule.Alert+"` | "+rule.Labels["severity"]+" |") {
				t.Errorf("docs/monitoring.md does not have %s as %s", rule.Alert, rule.Labels["severity"])
			}
			link := strings.TrimPrefix(rule.Annotations["runbook_url"], "https://github.com/kruisekit/kruisekit/blob/main/")
			path, heading, _ := strings.Cut(link, "#")
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
				continue
			}
			if heading != "" && !hasHeading(string(text), heading) {
				t.Errorf("%s: %s has no heading %s", rule.Alert, path, heading)
			}
		}
	}
}

func hasHeading(page, anchor string) bool {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Expressions fire on the series that they are about, and on no others.
func TestAlertsFire(t *testing.T) {
	expressions := map[string]string{}
	for _, group := range rules(t).Groups {
		for _, rule := range group.Rules {
			expressions[rule.Alert] = rule.Expr
		}
	}
	for alert, c := range map[string]struct{ load, fires string }{
		"KruiseManagerNoLeader": {
			"kruise_manager_is_leader{pod=\"a\"} 0 1 1\n kruise_manager_is_leader{pod=\"b\"} 0 0 1", "{} 2",
		},
		"KruiseWorkloadStalled": {
			`kruisekit_workloads_stalled{kind="CloneSet",status="True",reason="ImagePull"} 0 1 3` + "\n " +
				`kruisekit_workloads_stalled{kind="CloneSet",status="Unknown",reason="NoCapacity"} 5 5 5`,
			`{kind="CloneSet",reason="ImagePull"} 3`,
		},
		"KruiseControllerLeftOut": {
			`kruisekit_controllers_left_out{controller="cloneset",pod="a"} 1 1 1` + "\n " +
				`kruisekit_controllers_left_out{controller="nodeimage",pod="a"} 0 0 0`,
			`{controller="cloneset"} 1`,
		},
	} {
		t.Run(alert, func(t *testing.T) {
			if expressions[alert] == "" {
				t.Fatal("there is no such alert")
			}
			script := "load 1m\n " + c.load + "\n\neval instant at 2m " + expressions[alert] + "\n  " + c.fires + "\n"
			promqltest.RunTest(t, script, promqltest.NewTestEngine(t, false, 0, 10000))
		})
	}
}

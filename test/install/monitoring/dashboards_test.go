package monitoring

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Query                  any
		}
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// Each panel of a dashboard asks for metrics that exist, whatever is chosen.
func TestDashboards(t *testing.T) {
	all := metrics(t)
	paths, err := filepath.Glob(filepath.Join(root, "config", "monitoring", "dashboards", "*.json"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("%d dashboards, %v", len(paths), err)
	}
	for _, path := range paths {
		var d dashboard
		read(t, "dashboards/"+filepath.Base(path), &d)
		kinds := []string{""}
		for _, v := range d.Templating.List {
			if v.Name == "kind" {
				kinds = strings.Split(v.Query.(string), ",")
			}
		}
		for _, kind := range kinds {
			given := func(text string) string {
				return strings.NewReplacer("${kind}", kind, "$namespace", "shop", "$name", "web").Replace(text)
			}
			for _, v := range d.Templating.List {
				if v.Type != "query" {
					continue
				}
				m := regexp.MustCompile(`^label_values\((.*), (.*)\)$`).FindStringSubmatch(given(v.Definition))
				if m == nil {
					t.Errorf("%s: the variable %s is %s", d.UID, v.Name, v.Definition)
					continue
				}
				if err := all.check("sum by (" + m[2] + ") (" + m[1] + ")"); err != nil {
					t.Errorf("%s: the variable %s: %v", d.UID, v.Name, err)
				}
			}
			for _, p := range d.Panels {
				for _, target := range p.Targets {
					if err := all.check(given(target.Expr)); err != nil {
						t.Errorf("%s: %s: %v", d.UID, p.Title, err)
					}
				}
			}
		}
	}
}

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
		ID      int
		Title   string
		Type    string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

// Each panel of a dashboard asks for metrics that exist, whatever is chosen, and panels do not cover each other.
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
		checkPanels(t, d)
	}
}

func checkPanels(t *testing.T, d dashboard) {
	t.Helper()
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s: %s has the number %d and %d queries", d.UID, p.Title, p.ID, len(p.Targets))
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("%s: %s covers %q, or is too wide", d.UID, p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}

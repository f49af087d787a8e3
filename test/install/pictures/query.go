package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// dashboard is what the drawing needs of a dashboard of Grafana.
type dashboard struct {
	Title      string
	Templating struct{ List []variable }
	Panels     []panel
}

type variable struct{ Name, Type, Definition string }

type panel struct {
	Title, Type string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }

	series []series
}

// series is a line of a panel.
type series struct {
	name   string
	points []promql.FPoint
}

func readDashboard(path string) (dashboard, error) {
	var d dashboard
	text, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("read %s: %w", path, err)
	}
	return d, nil
}

// source answers the queries of panels.
type source struct {
	db        storage.Queryable
	engine    *promql.Engine
	from, to  time.Time
	variables map[string]string
}

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute})
}

// steps is how many points a line has at most.
const steps = 240

func (s source) query(ctx context.Context, expression string) (promql.Matrix, error) {
	step := max(5*time.Second, s.to.Sub(s.from)/steps).Truncate(time.Second)
	query, err := s.engine.NewRangeQuery(ctx, s.db, nil, expression, s.from, s.to, step)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	return slices.Clone(matrix), nil
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (.*)\)$`)
	legendLabel = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
)

// evaluate chooses values for the variables of a dashboard, and returns its panels with their series.
func (s source) evaluate(ctx context.Context, d dashboard) ([]panel, error) {
	given := func(text string) string {
		var pairs []string
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(s.variables))) { // $namespace before $name
			pairs = append(pairs, "${"+name+"}", s.variables[name], "$"+name, s.variables[name])
		}
		return strings.NewReplacer(pairs...).Replace(text)
	}
	for _, v := range d.Templating.List {
		parts := labelValues.FindStringSubmatch(given(v.Definition))
		if v.Type != "query" || parts == nil || s.variables[v.Name] != "" {
			continue
		}
		matrix, err := s.query(ctx, parts[1])
		if err != nil {
			return nil, err
		}
		if len(matrix) > 0 {
			s.variables[v.Name] = slices.MinFunc(matrix, func(a, b promql.Series) int {
				return cmp.Compare(a.Metric.Get(parts[2]), b.Metric.Get(parts[2]))
			}).Metric.Get(parts[2])
		}
	}
	panels := slices.Clone(d.Panels)
	for i := range panels {
		for _, target := range panels[i].Targets {
			matrix, err := s.query(ctx, given(target.Expr))
			if err != nil {
				return nil, fmt.Errorf("panel %s: %w", panels[i].Title, err)
			}
			for _, one := range matrix {
				points := slices.DeleteFunc(slices.Clone(one.Floats), func(p promql.FPoint) bool { return math.IsNaN(p.F) })
				if len(points) > 0 {
					name := legend(target.LegendFormat, one.Metric)
					panels[i].series = append(panels[i].series, series{name: name, points: points})
				}
			}
		}
	}
	return panels, nil
}

// legend is the name of a line.
func legend(format string, of labels.Labels) string {
	return strings.TrimSpace(legendLabel.ReplaceAllStringFunc(format, func(match string) string {
		return of.Get(legendLabel.FindStringSubmatch(match)[1])
	}))
}

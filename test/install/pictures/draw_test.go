package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// A dashboard is drawn from what its queries answer: each panel in its place, with its lines, legends and units.
func TestDraw(t *testing.T) {
	storage := promqltest.LoadedStorage(t, `load 10s
  memory_bytes{pod="a<b"} 1048576x60
  memory_bytes{pod="c"} 0 2097152x20 _x20 1048576x19
  ratio 0x60
  ready{namespace="shop",set="web"} 3x60
  ready{namespace="yard",set="web"} 3x60`)
	d := dashboard{Title: "Test & more"}
	d.Templating.List = []variable{
		{Name: "namespace", Type: "query", Definition: "label_values(ready, namespace)"},
		{Name: "name", Type: "query", Definition: `label_values(ready{namespace="$namespace"}, ${kind})`},
	}
	for i, p := range []panel{
		{Title: "Row", Type: "row"},
		{Title: "Memory", Type: "timeseries"},
		{Title: "Ready", Type: "stat"},
		{Title: "Nothing", Type: "timeseries"},
	} {
		p.GridPos.X, p.GridPos.Y, p.GridPos.W, p.GridPos.H = 6*i, 0, 6, 8
		d.Panels = append(d.Panels, p)
	}
	target := func(i int, expr, format string) {
		d.Panels[i].Targets = append(d.Panels[i].Targets, struct{ Expr, LegendFormat string }{expr, format})
	}
	target(1, "memory_bytes", "of {{pod}}")
	d.Panels[1].FieldConfig.Defaults.Unit = "bytes"
	target(2, `ready{namespace="$namespace",${kind}="$name"}`, "")
	target(3, "absent_metric", "")
	target(3, "ratio / ratio", "") // no number

	from := time.UnixMilli(0)
	s := source{
		db: storage, engine: newEngine(), from: from, to: from.Add(10 * time.Minute),
		variables: map[string]string{"kind": "set"},
	}
	panels, err := s.evaluate(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.variables["namespace"] + "/" + s.variables["name"]; got != "shop/web" {
		t.Errorf("the dashboard is of %s, want the first, shop/web", got)
	}
	if n := [3]int{len(panels[1].series), len(panels[2].series), len(panels[3].series)}; n != [3]int{2, 1, 0} {
		t.Errorf("lines of the panels: %v", n)
	}
	text := string(draw(d.Title, panels, s.from, s.to))
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v", err)
		}
	}
	for _, want := range []string{
		"Test &amp; more", ">of a&lt;b</text>", ">of c</text>", ">2 MiB</text>", ">no data</text>", ">3 <tspan",
		">00:04</text>", `x="604.0"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if n := strings.Count(text, ">no data<"); n != 1 {
		t.Errorf("%d panels have no data, want 1", n)
	}
}

// A line ends where points are missing, and begins again after it.
func TestPath(t *testing.T) {
	p := &picture{to: 600_000}
	points := []promql.FPoint{
		{T: 0, F: 0},
		{T: 10_000, F: 1},
		{T: 20_000, F: 1},
		{T: 30_000, F: 1},
		{T: 300_000, F: 1},
		{T: 310_000, F: math.NaN()},
		{T: 320_000, F: 2},
	}
	p.path(points, plot{box{w: 600, h: 100}, 2}, `class="line"`, false)
	want := `<path class="line" d="M0 100.0h.1L10 50.0H30M300 50.0h.1M320 0.0h.1"/>` + "\n"
	if got := p.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "short", "0"},
		{1234, "short", "1.23 K"},
		{12, "short", "12"},
		{0.5, "short", "0.5"},
		{2.5e6, "short", "2.5 Mil"},
		{1536, "bytes", "1.5 KiB"},
		{0.125, "percentunit", "12.5%"},
		{0.00025, "s", "250 µs"},
		{0.015, "s", "15 ms"},
		{1.5, "s", "1.5 s"},
		{300, "s", "5 min"},
		{0.3333, "ops", "0.333 ops/s"},
		{20, "reqps", "20 req/s"},
	} {
		if got := value(c.v, c.unit); got != c.want {
			t.Errorf("%g in %s is %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestNiceStep(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 1.1: 2, 21: 25, 60: 100} {
		if got := niceStep(v, "short"); math.Abs(got-want) > 1e-9 {
			t.Errorf("step for %g is %g, want %g", v, got, want)
		}
	}
	if got := niceStep(3000, "bytes"); got != 4096 {
		t.Errorf("step for 3000 bytes is %g, want 4096", got)
	}
}

// The dashboards have panels and units of the kinds that are drawn, and no others.
func TestDashboardsAreDrawn(t *testing.T) {
	paths, err := filepath.Glob("../../../config/monitoring/dashboards/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, path := range paths {
		d, err := readDashboard(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Panels {
			switch p.Type {
			case "row", "stat", "timeseries":
			default:
				t.Errorf("%s: %s has the type %s, which is not drawn", d.Title, p.Title, p.Type)
			}
			switch unit := p.FieldConfig.Defaults.Unit; unit {
			case "", "short", "ops", "reqps", "s", "bytes", "percentunit":
			default:
				t.Errorf("%s: %s has the unit %s, which is not drawn", d.Title, p.Title, unit)
			}
		}
	}
}

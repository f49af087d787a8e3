package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/bench/report"
)

// The page, the charts and the JSON have all that was measured.
func TestWrite(t *testing.T) {
	r := &report.Report{Machine: []string{"2 cores"}, Began: time.Unix(1_800_000_000, 0), Quick: true}
	s := r.Scenario("a", "Rollouts")
	table := s.Table("One workload", "phase", "pods")
	table.Add("create <all>", "300")
	table.Notes = []string{"A note."}
	s.Chart(report.Chart{Name: "sizes", Title: "CPU <per pod>", X: "pods", Y: "ms", Log: true, Lines: []report.Line{
		{Name: "create", Points: []report.Point{{X: 10, Y: 3.5}, {X: 1000, Y: 2}}}, {Name: "nothing"},
	}})
	s.Chart(report.Chart{Name: "path", Title: "Path", Lines: []report.Line{
		{Name: "create", Points: []report.Point{{X: 0.2, Y: 5}, {X: 61, Y: 2}}},
	}})
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"report.md": {
			"quick sizes", "- 2 cores", "## A: Rollouts", "| phase | pods |\n|---|--:|\n| create <all> | 300 |", "A note.",
			"](a-sizes.svg)",
		},
		"report.json": {`"Rows"`, `"create \u003call\u003e"`},
		// 10 and 1,000 are the ends of the axis, and 5 is that of the other.
		"a-sizes.svg": {`points="64.0,114.8 696.0,185.6"`, ">10<", ">200<", ">1000<", ">5<", "CPU &lt;per pod&gt;"},
		// An axis that is not logarithmic begins at 0, and has round numbers.
		"a-path.svg": {`points="66.1,44.0 696.0,185.6"`, ">0<", ">10<", ">60<"},
	}
	for file, parts := range want {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(content), part) {
				t.Errorf("%s lacks %q:\n%s", file, part, content)
			}
		}
	}
}

// A chart is well-formed, also one without values.
func TestSVG(t *testing.T) {
	for name, c := range map[string]report.Chart{
		"nothing":   {Title: "a & b"},
		"one point": {Lines: []report.Line{{Name: "<x>", Points: []report.Point{{X: 0, Y: 0}}}}},
	} {
		decoder := xml.NewDecoder(strings.NewReader(c.SVG()))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, c.SVG())
			}
		}
		if strings.Contains(c.SVG(), "NaN") || strings.Contains(c.SVG(), "Inf") {
			t.Errorf("%s: %s", name, c.SVG())
		}
	}
}

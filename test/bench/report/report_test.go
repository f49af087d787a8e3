package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/test/bench/report"
)

// The page has all that was measured.
func TestWrite(t *testing.T) {
	r := &report.Report{Machine: []string{"2 cores"}, Began: time.Unix(1_800_000_000, 0), Quick: true}
	s := r.Scenario("a", "Rollouts")
	table := s.Table("One workload", "phase", "pods")
	table.Add("create <all>", "300")
	table.Notes = []string{"A note."}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"report.md": {
			"quick sizes", "- 2 cores", "## A: Rollouts", "| phase | pods |\n|---|--:|\n| create <all> | 300 |", "A note.",
		},
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

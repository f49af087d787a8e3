package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// The page shows what is recorded, and nothing is recorded of versions that are not offered.
func TestResultsPage(t *testing.T) {
	root := filepath.Join("..", "..")
	m, err := readMatrix(filepath.Join(root, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	offered, err := cache.Offered()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, resultsPage))
	if err != nil {
		t.Fatal(err)
	}
	if want := matrixBegin + m.table(offered) + matrixEnd; !strings.Contains(string(page), want) {
		t.Errorf("%s does not have the table of %s (make versions writes both):\n%s", resultsPage, resultsFile, want)
	}
	for version := range m {
		if !strings.Contains(m.table(offered), strings.TrimPrefix(version, "v")) {
			t.Errorf("%s has results of %s, which is not offered", resultsFile, version)
		}
	}
}

func TestMatrix(t *testing.T) {
	m := matrix{"v1.1.1": {envtest: {Date: "2026-01-01", Passed: 1}, e2e: {Date: "2026-01-01", Passed: 2}}}
	m = m.record("v1.2.0", envtest, tally{
		Date: "2026-02-01", Passed: 5, Failed: 1, Skipped: 2, Failures: []string{"x TestX"}, Flaky: []string{"y TestY"},
		Reasons: map[string]int{"too old": 2},
	})
	m = m.record("v1.2.0", e2e, tally{Date: "2026-02-02", Passed: 3, Run: "A|B"})
	want := "| Kubernetes | API server | real nodes |\n|---|---|---|\n" +
		"| 1.2.0 | 5 passed, **1 failed**, 2 skipped, 2026-02-01 | 3 passed of `A\\|B`, 2026-02-02 |\n" +
		"| 1.1.1 | 1 passed, 2026-01-01 | 2 passed, 2026-01-01 |\n" +
		"\n- failed on v1.2.0: `x TestX`\n" +
		"- failed on v1.2.0, and passed when it ran once more: `y TestY`\n- skipped on 1.2 (2): too old\n"
	if diff := cmp.Diff(want, m.table([]string{"v1.1.1", "v1.2.0"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Real nodes are of the oldest and the newest version.
	if table := m.table([]string{"v1.1.1", "v1.1.9", "v1.2.0"}); !strings.Contains(table, "| 1.1.9 | not run |  |\n") {
		t.Errorf("a version in between:\n%s", table)
	}
	// Results of one patch release do not stand for another.
	m = m.record("v1.1.2", envtest, tally{Date: "2026-03-01", Passed: 4})
	want = "| Kubernetes | API server | real nodes |\n|---|---|---|\n| 1.1.2 | 4 passed, 2026-03-01 | not run |\n"
	if diff := cmp.Diff(want, m.table([]string{"v1.1.2"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, kept := m["v1.1.1"]; kept {
		t.Error("the results of the earlier patch release are kept")
	}
}

// What is written is what is read, and all of the page but the table stays.
func TestWrite(t *testing.T) {
	results, page := filepath.Join(t.TempDir(), "r.json"), filepath.Join(t.TempDir(), "r.md")
	m := matrix{"v1.1.1": {envtest: {Date: "2026-01-01", Passed: 1, Reasons: map[string]int{"x": 1}}}}
	if err := m.write(results, page, nil); err == nil {
		t.Error("a table is written into a page that is missing")
	}
	if err := os.WriteFile(page, []byte("before\n"+matrixBegin+"old\n"+matrixEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.write(results, page, []string{"v1.1.1"}); err != nil {
		t.Fatal(err)
	}
	again, err := readMatrix(results)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + matrixBegin + m.table([]string{"v1.1.1"}) + matrixEnd + "after\n"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

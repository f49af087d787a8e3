// Package report writes what a benchmark has measured.
package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Report is a run of the benchmark.
type Report struct {
	// Machine says where and of what the figures are, a line each.
	Machine []string
	Began   time.Time
	// Quick figures are of small sizes.
	Quick     bool
	Scenarios []*Scenario
}

// Scenario is what one scenario has measured.
type Scenario struct {
	Name, Title string
	Tables      []*Table
}

// Table has figures that are read together.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
	// Notes follow the table.
	Notes []string
}

// Scenario adds a scenario.
func (r *Report) Scenario(name, title string) *Scenario {
	s := &Scenario{Name: name, Title: title}
	r.Scenarios = append(r.Scenarios, s)
	return s
}

// Table adds a table.
func (s *Scenario) Table(title string, columns ...string) *Table {
	t := &Table{Title: title, Columns: columns}
	s.Tables = append(s.Tables, t)
	return t
}

// Add adds a row to the table.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Markdown is the page.
func (r *Report) Markdown() string {
	var b strings.Builder
	size := "full"
	if r.Quick {
		size = "quick"
	}
	fmt.Fprintf(&b, "Run of %s, %s sizes.\n\n", r.Began.UTC().Format("2006-01-02 15:04 MST"), size)
	for _, line := range r.Machine {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, s := range r.Scenarios {
		fmt.Fprintf(&b, "\n## %s: %s\n", strings.ToUpper(s.Name), s.Title)
		for _, t := range s.Tables {
			t.markdown(&b)
		}
	}
	return b.String()
}

func (t *Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n| %s |\n|%s\n", t.Title, strings.Join(t.Columns, " | "),
		"---|"+strings.Repeat("--:|", len(t.Columns)-1))
	for _, row := range t.Rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	for _, note := range t.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
}

// Write writes report.md into a directory.
func (r *Report) Write(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.Markdown()), 0o600); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

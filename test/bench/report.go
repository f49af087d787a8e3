package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// report is what the benchmark has measured, as Markdown.
type report struct{ text strings.Builder }

func (r *report) linef(format string, args ...any) { fmt.Fprintf(&r.text, format+"\n", args...) }

// table begins a table. Rows follow.
func (r *report) table(title string, columns ...string) {
	r.linef("\n### %s\n\n| %s |\n|---|%s", title, strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)-1))
}

// row adds a row to the table, and prints it.
func (r *report) row(cells ...string) {
	fmt.Printf("  %v\n", cells)
	r.linef("| %s |", strings.Join(cells, " | "))
}

// write writes report.md into a directory.
func (r *report) write(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.text.String()), 0o600); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

const (
	// resultsFile has what the tests of each version of Kubernetes came to, and resultsPage the table of it.
	resultsFile, resultsPage = "docs/versions.json", "docs/versions.md"

	matrixBegin = "<!-- versions: by make versions -->\n"
	matrixEnd   = "<!-- end of versions -->\n"
)

// matrix has the tallies by the version of Kubernetes, and then by the level.
type matrix map[string]map[string]tally

// tally is what the tests of one level came to on one version.
type tally struct {
	Date    string `json:"date"`
	Seconds int    `json:"seconds"`
	// Run selects the tests, as for go test. All have run where it is empty.
	Run      string         `json:"run,omitempty"`
	Passed   int            `json:"passed"`
	Failed   int            `json:"failed"`
	Skipped  int            `json:"skipped"`
	Failures []string       `json:"failures,omitempty"`
	Flaky    []string       `json:"flaky,omitempty"`   // failed, and passed when they ran once more
	Reasons  map[string]int `json:"reasons,omitempty"` // why tests were skipped, with their number
}

// err says that tests failed.
func (t tally) err(version, level string) error {
	if t.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%s of Kubernetes %s: %d tests failed", level, version, t.Failed)
}

// readMatrix returns the recorded matrix, an empty one where nothing is recorded.
func readMatrix(path string) (matrix, error) {
	m := matrix{}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	return m, nil
}

// record returns the matrix with a tally. It takes the place of that of an earlier patch release.
func (m matrix) record(version, level string, done tally) matrix {
	next := matrix{}
	for other, levels := range m {
		if other == version || binaries.Minor(other) != binaries.Minor(version) {
			next[other] = maps.Clone(levels)
		}
	}
	if next[version] == nil {
		next[version] = map[string]tally{}
	}
	next[version][level] = done
	return next
}

// table is the matrix as Markdown, for the offered versions. Below it are failures, and why tests were skipped.
func (m matrix) table(offered []string) string {
	var b, below strings.Builder
	b.WriteString("| Kubernetes | API server | real nodes |\n|---|---|---|\n")
	for i, version := range slices.Backward(offered) {
		nodes := m.cell(version, e2e)
		if i > 0 && i < len(offered)-1 {
			nodes = "" // neither the oldest nor the newest
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.TrimPrefix(version, "v"), m.cell(version, envtest), nodes)
		for _, level := range []string{envtest, e2e} {
			for _, name := range m[version][level].Failures {
				fmt.Fprintf(&below, "- failed on %s: `%s`\n", version, name)
			}
			for _, name := range m[version][level].Flaky {
				fmt.Fprintf(&below, "- failed on %s, and passed when it ran once more: `%s`\n", version, name)
			}
		}
	}
	for _, level := range []string{envtest, e2e} {
		reasons := map[string][]string{} // to versions
		for _, version := range offered {
			for reason, n := range m[version][level].Reasons {
				reasons[reason] = append(reasons[reason], fmt.Sprintf("%s (%d)", binaries.Minor(version), n))
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			fmt.Fprintf(&below, "- skipped on %s: %s\n", strings.Join(reasons[reason], ", "), reason)
		}
	}
	if below.Len() > 0 {
		b.WriteString("\n" + below.String())
	}
	return b.String()
}

func (m matrix) cell(version, level string) string {
	done, recorded := m[version][level]
	if !recorded {
		return "not run"
	}
	text := fmt.Sprintf("%d passed", done.Passed)
	if done.Failed > 0 {
		text += fmt.Sprintf(", **%d failed**", done.Failed)
	}
	if done.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", done.Skipped)
	}
	if done.Run != "" {
		text += " of `" + strings.ReplaceAll(done.Run, "|", `\|`) + "`"
	}
	return text + ", " + done.Date
}

// write records the matrix, and puts its table in the page.
func (m matrix) write(results, page string, offered []string) error {
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(results, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	before, rest, begins := bytes.Cut(text, []byte(matrixBegin))
	_, after, ends := bytes.Cut(rest, []byte(matrixEnd))
	if !begins || !ends {
		return fmt.Errorf("write the table: no place for it in %s", page)
	}
	written := slices.Concat(before, []byte(matrixBegin+m.table(offered)+matrixEnd), after)
	if err := os.WriteFile(page, written, 0o600); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

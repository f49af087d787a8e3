// Command metrics keeps the table of metrics in docs/monitoring.md complete: names, types and labels are those in the
// code. What a metric means is written in the table; a new metric gets the text of its help.
//
//	go run ./hack/metrics
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

const (
	page  = "docs/monitoring.md"
	begin = "<!-- metrics: names, types and labels by hack/metrics -->\n"
	end   = "<!-- end of metrics -->\n"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	text, err := os.ReadFile(root + "/" + page)
	if err != nil {
		return err
	}
	all, err := collect(root)
	if err != nil {
		return err
	}
	changed, err := replace(string(text), all)
	if err != nil {
		return err
	}
	return os.WriteFile(root+"/"+page, []byte(changed), 0o600)
}

// replace returns the page with the table of the metrics.
func replace(text string, all []metric) (string, error) {
	before, rest, found := strings.Cut(text, begin)
	table, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", errors.New(page + " has no place for the table")
	}
	meaning := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .*? \\| .*? \\| (.*) \\|$")
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		meaning[m[1]] = m[2]
	}
	var out strings.Builder
	out.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range all {
		if meaning[m.name] == "" {
			meaning[m.name] = m.help
		}
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, meaning[m.name])
	}
	return before + begin + out.String() + end + after, nil
}

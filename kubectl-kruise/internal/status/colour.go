package status

import (
	"regexp"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/term"
)

// painter returns the function that colours a report, where the output is a terminal that has colours.
func painter(streams genericiooptions.IOStreams) func(string) string {
	if !term.AllowsColorOutput(streams.Out) {
		return func(page string) string { return page }
	}
	return paint
}

// paint colours a report: ready pods green, others yellow, and the headings bold.
func paint(page string) string {
	for _, p := range []struct {
		pattern *regexp.Regexp
		colour  string
	}{
		{regexp.MustCompile(`█+`), "32"},
		{regexp.MustCompile(`▒+`), "33"},
		{regexp.MustCompile(`·+`), "2"},
		{regexp.MustCompile(`(?m)^(Why|Pods):$|\A.+`), "1"},
	} {
		page = p.pattern.ReplaceAllString(page, "\x1b["+p.colour+"m$0\x1b[0m")
	}
	return page
}

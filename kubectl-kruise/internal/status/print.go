package status

import (
	"fmt"
	"io"
	"strings"
)

// width of a bar, in characters.
const width = 30

// Print writes a report. At most limit pods are listed: 0 lists all.
func (r Report) Print(out io.Writer, limit int) {
	fmt.Fprintln(out, r.Title)
	if r.Failed != nil {
		fmt.Fprintln(out, "  "+r.Failed.Error())
	} else {
		fmt.Fprintln(out, "  "+strings.TrimSpace(r.Line))
	}
	total, longest := 0, 0
	for _, rev := range r.Revisions {
		total, longest = total+rev.Pods, max(longest, len(rev.Name))
	}
	for _, rev := range r.Revisions {
		mark := " "
		if rev.Newest {
			mark = "*"
		}
		fmt.Fprintf(out, "%s %-*s %s %d of %d, %d ready\n", mark, longest, rev.Name, bar(rev, total), rev.Pods, total,
			rev.Ready)
	}
	if len(r.Reasons) > 0 {
		fmt.Fprintln(out, "Why:")
	}
	for _, reason := range r.Reasons {
		fmt.Fprintln(out, "  "+reason)
	}
	if len(r.Pods) == 0 {
		return
	}
	fmt.Fprintln(out, "Pods:")
	for i, pod := range r.Pods {
		if limit > 0 && i == limit {
			fmt.Fprintf(out, "  ... and %d more, see --pods\n", len(r.Pods)-limit)
			break
		}
		fmt.Fprintf(out, "  %s: %s\n", pod.Name, strings.Join(pod.Reasons, "; "))
	}
}

// bar draws the ready pods of a revision full, and the others shaded.
func bar(r Revision, total int) string {
	ready, all := scaled(r.Ready, total), scaled(r.Pods, total)
	return strings.Repeat("█", ready) + strings.Repeat("▒", all-ready) + strings.Repeat("·", width-all)
}

// scaled returns how many characters of a bar a number takes: at least one for a number above zero.
func scaled(n, total int) int {
	if n == 0 || total == 0 {
		return 0
	}
	return max(n*width/total, 1)
}

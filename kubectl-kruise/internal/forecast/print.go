package forecast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kruisekit/kruisekit/note"
)

// WriteJSON writes the forecast as JSON. The fields are those of Forecast.
func (f *Forecast) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return fmt.Errorf("write forecast: %w", err)
	}
	return nil
}

// WriteText writes the forecast for a reader: a summary, the fate of each pod, the batches, and what keeps the workload
// from completion.
func (f *Forecast) WriteText(w io.Writer) error {
	p := newPrinter()
	f.summary(p)
	f.subsets(p)
	f.pods(p)
	f.timeline(p)
	f.notes(p)
	if _, err := io.WriteString(w, p.text()); err != nil {
		return fmt.Errorf("write forecast: %w", err)
	}
	return nil
}

// printer writes lines and tables into memory.
type printer struct {
	buffer  bytes.Buffer
	columns *tabwriter.Writer
}

func newPrinter() *printer {
	p := &printer{}
	p.columns = tabwriter.NewWriter(&p.buffer, 0, 8, 2, ' ', 0)
	return p
}

func (p *printer) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p.columns, format+"\n", args...)
}

// table begins a table, whose columns are aligned apart from those before.
func (p *printer) table(columns ...string) {
	p.line("")
	_ = p.columns.Flush()
	p.line("%s", strings.Join(columns, "\t"))
}

// text is all that was written, without spaces at the ends of lines.
func (p *printer) text() string {
	_ = p.columns.Flush()
	lines := strings.Split(p.buffer.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (f *Forecast) summary(p *printer) {
	revisions := brief(f.To)
	if f.From != f.To && f.From != "" {
		revisions = brief(f.From) + " -> " + brief(f.To)
	}
	name := f.Name
	if f.Namespace != "" {
		name = f.Namespace + "/" + name
	}
	p.line("%s %s: %s", f.Kind, name, revisions)
	counts := map[Fate]int{}
	for i := range f.Pods {
		counts[f.Pods[i].Fate]++
	}
	var parts []string
	for _, fate := range fates() {
		if n := counts[fate]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, fate.words()))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no pods"}
	}
	p.line("%s: %s", f.Severity, strings.Join(parts, ", "))
	bound := fmt.Sprintf("at least %d of %d pods stay available (maxUnavailable %d", f.Bounds.MinAvailable,
		f.Bounds.Replicas, f.Bounds.MaxUnavailable)
	if f.Bounds.MaxSurge > 0 {
		bound += fmt.Sprintf(", maxSurge %d", f.Bounds.MaxSurge)
	}
	if f.Bounds.Partition > 0 {
		bound += fmt.Sprintf(", partition %d", f.Bounds.Partition)
	}
	p.line("%s", bound+")")
	switch {
	case f.BuiltIn != "":
		p.line("the built-in controller rolls out, because %s", f.BuiltIn)
	case f.Hold != nil && f.Hold.Ends != nil:
		p.line("the Deployment is held for %s, until all pods run the change", short(*f.Hold.Ends))
	case f.Hold != nil:
		p.line("the Deployment is held, and the hold lasts while pods wait")
	}
	if n := len(f.Batches); n > 0 {
		p.line("%s of up to %s in about %s", number(n, "batch", "batches"), number(f.largest(), "pod", "pods"),
			short(f.Duration))
	}
}

// largest is the number of pods of the largest batch.
func (f *Forecast) largest() (n int) {
	for i := range f.Batches {
		n = max(n, len(f.Batches[i].Pods))
	}
	return n
}

func fates() []Fate { return []Fate{Blocked, Recreated, Deleted, InPlace, Created, Kept, Unchanged} }

func (f Fate) words() string {
	if f == InPlace {
		return "in place"
	}
	return strings.ToLower(string(f))
}

func (f *Forecast) subsets(p *printer) {
	if len(f.Subsets) == 0 {
		return
	}
	p.table("SUBSET", "BEFORE", "AFTER", "PARTITION")
	for _, s := range f.Subsets {
		p.line("%s\t%d\t%d\t%d", s.Name, s.Before, s.After, s.Partition)
	}
}

func (f *Forecast) pods(p *printer) {
	if len(f.Pods) == 0 {
		return
	}
	byNode := f.Kind == "DaemonSet"
	if columns := []string{"POD", "FATE", "BATCH", "DETAIL"}; byNode {
		p.table(slices.Insert(columns, 1, "NODE")...)
	} else {
		p.table(columns...)
	}
	for i := range f.Pods {
		pod := &f.Pods[i]
		batch := "-"
		if pod.Batch > 0 {
			batch = fmt.Sprint(pod.Batch)
		}
		name := pod.Name
		if byNode {
			name += "\t" + pod.Node
		}
		p.line("%s\t%s\t%s\t%s", name, pod.Fate.words(), batch, pod.detail())
	}
}

// detail explains a fate in one line.
func (p *Pod) detail() string {
	var parts []string
	switch {
	case len(p.Containers) > 0:
		parts = append(parts, "restarts "+strings.Join(p.withImages(), ", "))
	case p.Fate == InPlace:
		parts = append(parts, "restarts no container")
	case len(p.Paths) > 0:
		parts = append(parts, "changes "+strings.Join(p.Paths, ", "))
	}
	if p.Text != "" && len(p.Paths) == 0 {
		parts = append(parts, p.Text)
	}
	if len(p.Hooks) > 0 && p.Fate != Blocked {
		parts = append(parts, "waits for hook "+strings.Join(p.Hooks, ", "))
	}
	return strings.Join(parts, "; ")
}

// withImages are the containers that restart, with their new images.
func (p *Pod) withImages() []string {
	all := slices.Clone(p.Containers)
	for i, name := range all {
		if image := p.Images[name]; image != "" {
			all[i] = name + " (" + image + ")"
		}
	}
	return all
}

func (f *Forecast) timeline(p *printer) {
	if len(f.Timeline) < 2 {
		return
	}
	p.table("AFTER", "AVAILABLE", "BOUND", "UPDATED", "PODS", "BEGINS")
	next := 0
	for i := range f.Timeline {
		m, begins := &f.Timeline[i], ""
		for next < len(f.Batches) && f.Batches[next].At <= m.At {
			begins += fmt.Sprintf("batch %d: %s  ", next+1, number(len(f.Batches[next].Pods), "pod", "pods"))
			next++
		}
		same := i > 0 && begins == "" && f.Timeline[i-1].counts() == m.counts()
		if same {
			continue // but for pods that have ended
		}
		p.line("%s\t%d\t%d\t%d\t%d\t%s", short(m.At), m.Available, f.Bounds.MinAvailable, m.Updated, m.Pods, begins)
	}
}

func (f *Forecast) notes(p *printer) {
	if assumed := f.assumed(); len(assumed) > 0 {
		p.line("")
		p.line("No pod shows how long these take, which are assumed: %s", strings.Join(assumed, ", "))
	}
	if !f.Incomplete {
		return
	}
	p.line("")
	p.line("The rollout does not complete:")
	for _, n := range f.Notes {
		p.line("  %s", note.Note(n).String())
	}
}

// assumed are the assumptions on which the duration depends.
func (f *Forecast) assumed() (all []string) {
	matters := map[string]bool{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		matters["start"] = matters["start"] || pod.Fate == Created || pod.Fate == Recreated
		matters["end"] = matters["end"] || pod.Fate == Deleted || pod.Fate == Recreated
		matters["restart"] = matters["restart"] || len(pod.Containers) > 0
	}
	times := map[string]Seconds{"start": f.Pace.Start, "restart": f.Pace.Restart, "end": f.Pace.End}
	for _, name := range f.Pace.Assumed {
		if matters[name] {
			all = append(all, name+" "+short(times[name]))
		}
	}
	return all
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// short is a duration without zero units.
func short(s Seconds) string {
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// brief shortens a hash that is too long to be read.
func brief(revision string) string {
	const readable = 12
	if len(revision) > 4*readable && !strings.Contains(revision, "-") {
		return revision[:readable]
	}
	return revision
}

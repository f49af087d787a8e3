package screen

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// rare is how much time there is at least between two lines about a workload that is under way.
const rare = 2 * time.Second

// Lines writes a line where something has changed.
type Lines struct {
	Out io.Writer

	step int
	said map[string]said
}

type said struct {
	text string
	at   time.Duration
	done bool
}

// Draw writes what is new. Of what changes all the time it writes now and then.
func (l *Lines) Draw(f Frame) error {
	var b strings.Builder
	if f.Step != l.step {
		l.step, l.said = f.Step, map[string]said{}
		fmt.Fprintf(&b, "[%d/%d] %s\n", f.Step, f.Steps, f.Title)
	}
	for _, w := range f.Workloads {
		text, last := w.line(), l.said[w.Name]
		now := said{text: text, at: f.Elapsed, done: w.Took > 0}
		if last.text == text || last.text != "" && now.done == last.done && f.Elapsed-last.at < rare {
			continue
		}
		l.said[w.Name] = now
		fmt.Fprintf(&b, "%7s  %s\n", seconds(f.Elapsed), text)
	}
	_, err := io.WriteString(l.Out, b.String())
	return err
}

// line is a workload in one line.
func (w Workload) line() string {
	parts := []string{fmt.Sprintf("%d of %d updated, %d pods kept", w.Updated, w.Replicas, w.Kept)}
	for _, r := range w.Revisions {
		parts = append(parts, r.Name+": "+r.numbers())
	}
	switch {
	case w.Idle:
		parts = append(parts, "unchanged")
	case w.Took > 0:
		parts = append(parts, "done in "+seconds(w.Took))
	}
	for _, n := range w.Notes {
		parts = append(parts, n.Code+": "+n.Text)
	}
	return fmt.Sprintf("%-17s %s", w.Name, strings.Join(parts, "; "))
}

func (r Revision) numbers() string {
	text := fmt.Sprintf("%d ready", r.Ready)
	if r.Starting > 0 {
		text += fmt.Sprintf(", %d starting", r.Starting)
	}
	if r.Leaving > 0 {
		text += fmt.Sprintf(", %d leaving", r.Leaving)
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

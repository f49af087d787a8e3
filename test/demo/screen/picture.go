package screen

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Style says how a picture is to look.
type Style struct {
	// Width and Height of the terminal. Nothing is wider or higher; zero is 80 by 24.
	Width, Height int
	// Colours marks what is ready, starting and leaving by colours too.
	Colours bool
}

func (s Style) withDefaults() Style {
	if s.Width <= 0 {
		s.Width = 80
	}
	if s.Height <= 0 {
		s.Height = 24
	}
	return s
}

const (
	// label is the column of names and codes, in a terminal of usual width and in a narrow one.
	label, narrowLabel, narrow = 18, 14, 64
	// wideBar is a bar in a terminal that has room, a cell for each of 30 pods; and numbers is what follows it.
	wideBar, narrowBar, numbers = 30, 4, 24
	// noteLines are the lines of one note at most, and notesShown is how many notes are shown.
	noteLines, notesShown = 3, 4
)

func labelOf(width int) int {
	if width < narrow {
		return narrowLabel
	}
	return label
}

// Picture draws a frame, each line ended.
func Picture(f Frame, s Style) string {
	s = s.withDefaults()
	lines := []line{between(fmt.Sprintf("[%d/%d] %s", f.Step, f.Steps, f.Title), seconds(f.Elapsed), s.Width, bold)}
	for _, w := range f.Workloads {
		lines = append(lines, line{})
		lines = append(lines, w.lines(s.Width)...)
	}
	// The cursor stands in the line below.
	lines = lines[:min(len(lines), max(1, s.Height-1))]
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.cut(s.Width, s.Colours) + "\n")
	}
	return b.String()
}

func (w Workload) lines(width int) []line {
	lines := []line{between(pad(w.Name, labelOf(width)+2)+w.sum(), w.state(), width, plain)}
	for _, r := range w.Revisions {
		lines = append(lines, w.bar(r, width))
	}
	for _, n := range w.Notes[:min(len(w.Notes), notesShown)] {
		for i, text := range wrap(n.Text, width-labelOf(width)-2, noteLines) {
			code := ""
			if i == 0 {
				code = n.Code
			}
			lines = append(lines, line{{"  " + pad(code, labelOf(width)), dim}, {text, plain}})
		}
	}
	return lines
}

// sum says in one phrase where the workload is.
func (w Workload) sum() string {
	return fmt.Sprintf("%d of %d updated, %d pods kept", w.Updated, w.Replicas, w.Kept)
}

// state is what stands at the right.
func (w Workload) state() string {
	switch {
	case w.Idle:
		return "unchanged"
	case w.Took > 0:
		return "done in " + seconds(w.Took)
	}
	return "under way"
}

// bar has a cell for each pod where there is room.
func (w Workload) bar(r Revision, width int) line {
	size := max(narrowBar, min(wideBar, width-labelOf(width)-2-numbers))
	ready, starting, leaving := cells(r.Ready, w.Replicas, size), cells(r.Starting, w.Replicas, size),
		cells(r.Leaving, w.Replicas, size)
	rest := max(0, size-ready-starting-leaving)
	return line{
		{"  " + pad(r.Name, labelOf(width)), plain},
		{strings.Repeat("█", ready), green},
		{strings.Repeat("▒", starting), yellow},
		{strings.Repeat("░", leaving), red},
		{strings.Repeat("·", rest), dim},
		{" " + r.numbers(), plain},
	}
}

func (r Revision) numbers() string {
	text := fmt.Sprintf("%2d ready", r.Ready)
	if r.Starting > 0 {
		text += fmt.Sprintf(", %d starting", r.Starting)
	}
	if r.Leaving > 0 {
		text += fmt.Sprintf(", %d leaving", r.Leaving)
	}
	return text
}

// cells are how many of size show n of all; what there is has one at least.
func cells(n, all, size int) int {
	if n <= 0 || all <= 0 {
		return 0
	}
	return max(1, min(n*size/all, size))
}

// between puts one text at the left and one at the right, if there is room for both.
func between(left, right string, width int, c colour) line {
	room := width - utf8.RuneCountInString(left) - utf8.RuneCountInString(right)
	if room < 2 {
		return line{{left, c}}
	}
	return line{{left, c}, {strings.Repeat(" ", room) + right, dim}}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

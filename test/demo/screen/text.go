package screen

import (
	"strings"
	"unicode/utf8"
)

// colour is the number of an ANSI colour; zero is that of the terminal.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// span is a piece of a line in one colour.
type span struct {
	text   string
	colour colour
}

// line is a line of spans, each a cell per rune.
type line []span

// cut gives the line as text of at most so many cells. A cut one ends in an ellipsis.
func (l line) cut(width int, colours bool) string {
	var b strings.Builder
	left, total := width, 0
	for _, s := range l {
		total += utf8.RuneCountInString(s.text)
	}
	if total > width {
		left--
	}
	for _, s := range l {
		runes := []rune(s.text)
		runes = runes[:max(0, min(left, len(runes)))]
		left -= len(runes)
		if colours && s.colour != plain && len(runes) > 0 {
			b.WriteString("\x1b[" + string(s.colour) + "m" + string(runes) + "\x1b[0m")
		} else {
			b.WriteString(string(runes))
		}
	}
	if total > width {
		b.WriteString("…")
	}
	return strings.TrimRight(b.String(), " ")
}

// pad fills a text up to a width, with a space behind it in any case.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(text)))
}

// wrap breaks a text between words, into lines of a width, but no more than so many: what is left stays in the last.
func wrap(text string, width, most int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(lines) < most && utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}

package screen

import (
	"io"
	"strconv"
	"strings"
)

// Live draws each frame over the last one.
type Live struct {
	// Out is the terminal.
	Out io.Writer
	// Style is asked before each frame: a terminal may change its size.
	Style func() Style

	last, step int
}

const (
	hideCursor, showCursor = "\x1b[?25l", "\x1b[?25h"
	clearBelow             = "\x1b[J"
)

// Draw shows a frame. The last one of a step stays.
func (l *Live) Draw(f Frame) error {
	text := hideCursor
	if f.Step == l.step && l.last > 0 {
		text += "\x1b[" + strconv.Itoa(l.last) + "A\r"
	}
	if f.Step != l.step && l.step != 0 {
		text += "\n"
	}
	picture := Picture(f, l.Style())
	l.step, l.last = f.Step, strings.Count(picture, "\n")
	_, err := io.WriteString(l.Out, text+clearBelow+picture)
	return err
}

// Close gives the terminal back as it was.
func (l *Live) Close() error {
	_, err := io.WriteString(l.Out, showCursor)
	return err
}

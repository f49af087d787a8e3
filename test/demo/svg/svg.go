// Package svg draws the text of a terminal as an SVG image: colours as ANSI codes, and the cells of bars as rectangles,
// which look the same in every font.
//
// When not to use it: for anything that moves the cursor. It reads lines from top to bottom.
package svg

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// cell is the size of a character, margin the space around all of them.
	cellWidth, cellHeight, margin = 8, 18, 16
	// baseline is how far below the top of its cell a character stands.
	baseline = 13
	// barTop and barHeight place a bar within its cell.
	barTop, barHeight = 3, 11

	background, foreground, faint = "#0d1117", "#e6edf3", "#8b949e"
)

// colours by ANSI code.
func colours() map[string]string {
	return map[string]string{"2": faint, "31": "#ff7b72", "32": "#3fb950", "33": "#d29922"}
}

// opacity of the cells of bars, by their character.
func opacity() map[rune]string { return map[rune]string{'█': "1", '▒': ".75", '░': ".6"} }

var (
	code  = regexp.MustCompile(`\x1b\[([0-9;]*)m`)
	piece = regexp.MustCompile(`[█▒░]+|[^█▒░]+`)
	words = regexp.MustCompile(`[^ ]+(?: [^ ]+)*`)
)

// Frame is a text of a moving image, and for how many seconds it stands.
type Frame struct {
	Text    string
	Seconds float64
}

// Draw returns the image of a text whose ANSI codes set and reset one colour at a time.
func Draw(text, title string) string {
	return draw([]Frame{{Text: text}}, title, func(b *strings.Builder) { drawText(b, text) })
}

// Animate returns an image that shows one text after the other, again and again. Where images do not move, it shows the
// text with the number still.
func Animate(frames []Frame, still int, title string) string {
	return draw(frames, title, func(b *strings.Builder) {
		total, begin := 0.0, 0.0
		for _, f := range frames {
			total += f.Seconds
		}
		b.WriteString("<style>g.f{visibility:hidden}g.s{visibility:visible}" +
			"@media(prefers-reduced-motion:no-preference){g.f{visibility:hidden}")
		for i, f := range frames {
			end := begin + f.Seconds
			fmt.Fprintf(b, "#f%d{animation:k%[1]d %.1[2]fs step-end infinite}@keyframes k%[1]d{0%%{visibility:hidden}"+
				"%.2[3]f%%{visibility:visible}%.2[4]f%%,100%%{visibility:hidden}}", i, total, 100*begin/total, 100*end/total)
			begin = end
		}
		b.WriteString("}</style>\n")
		for i, f := range frames {
			fmt.Fprintf(b, `<g id="f%d" class="f%s">`+"\n", i, map[bool]string{true: " s"}[i == still])
			drawText(b, f.Text)
			b.WriteString("</g>\n")
		}
	})
}

// draw returns an image that has room for each of the texts.
func draw(frames []Frame, title string, content func(*strings.Builder)) string {
	columns, rows := 0, 0
	for _, f := range frames {
		lines := linesOf(f.Text)
		rows = max(rows, len(lines))
		for _, l := range lines {
			columns = max(columns, utf8.RuneCountInString(code.ReplaceAllString(l, "")))
		}
	}
	width, height := columns*cellWidth+2*margin, rows*cellHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`+"\n",
		width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="%s"/>`+"\n", width, height, background)
	b.WriteString(
		`<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13" xml:space="preserve">` +
			"\n")
	content(&b)
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

func linesOf(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

func drawText(b *strings.Builder, text string) {
	for i, l := range linesOf(text) {
		drawLine(b, l, margin+i*cellHeight)
	}
}

// drawLine draws one line, whose cells begin at the height top.
func drawLine(b *strings.Builder, line string, top int) {
	column, colour := 0, ""
	for line != "" {
		text := line
		at := code.FindStringSubmatchIndex(line)
		if at != nil {
			text = line[:at[0]]
		}
		for _, p := range piece.FindAllString(text, -1) {
			run{p, colour, margin + column*cellWidth, top}.draw(b)
			column += utf8.RuneCountInString(p)
		}
		if at == nil {
			return
		}
		colour, line = line[at[2]:at[3]], line[at[1]:]
	}
}

// run is a run of one bar's cells, or of characters, in one colour. Its first cell is at x and top.
type run struct {
	text, colour string
	x, top       int
}

func (r run) draw(b *strings.Builder) {
	fill, weight := foreground, ""
	if c := colours()[r.colour]; c != "" {
		fill = c
	}
	first, _ := utf8.DecodeRuneInString(r.text)
	if shade := opacity()[first]; shade != "" {
		for i := range utf8.RuneCountInString(r.text) {
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" fill-opacity="%s"/>`+"\n",
				r.x+i*cellWidth, r.top+barTop, cellWidth-1, barHeight, fill, shade)
		}
		return
	}
	if r.colour == "1" {
		weight = ` font-weight="bold"`
	}
	// Each column of a table is a text of its own, for browsers take several spaces for one.
	for _, at := range words.FindAllStringIndex(r.text, -1) {
		text := r.text[at[0]:at[1]]
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s"%s textLength="%d">%s</text>`+"\n",
			r.x+utf8.RuneCountInString(r.text[:at[0]])*cellWidth, r.top+baseline, fill, weight,
			utf8.RuneCountInString(text)*cellWidth, escape(text))
	}
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes all
	return b.String()
}

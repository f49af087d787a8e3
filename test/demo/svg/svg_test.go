package svg_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/demo/svg"
)

// drawn is what an image shows.
type drawn struct {
	texts []string
	rects int
}

func read(t *testing.T, image string) drawn {
	t.Helper()
	var d drawn
	decoder, inText := xml.NewDecoder(strings.NewReader(image)), false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, image)
		}
		switch x := token.(type) {
		case xml.StartElement:
			inText = x.Name.Local == "text"
			if x.Name.Local == "rect" {
				d.rects++
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				d.texts = append(d.texts, string(x))
			}
		}
	}
}

// A recorded screen is drawn whole: each word of it as text, each cell of its bars as a rectangle.
func TestDraw(t *testing.T) {
	screen, err := os.ReadFile("../screen/testdata/picture-colours.txt")
	if err != nil {
		t.Fatal(err)
	}
	image := svg.Draw(string(screen), "a <rollout>")
	d := read(t, image)
	text := regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(string(screen), " ")
	isBar := func(r rune) bool { return strings.ContainsRune("█▒░", r) }
	cells := strings.Count(text, "█") + strings.Count(text, "▒") + strings.Count(text, "░")
	if d.rects != cells+1 { // and the background
		t.Errorf("%d rectangles for %d cells of bars and the background", d.rects, cells)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return isBar(r) || r == ' ' || r == '\n' })
	if got := strings.Fields(strings.Join(d.texts, " ")); strings.Join(got, " ") != strings.Join(words, " ") {
		t.Errorf("the image shows other words than the screen:\n%v\nwant\n%v", got, words)
	}
	if !strings.Contains(image, "<title>a &lt;rollout&gt;</title>") {
		t.Errorf("no title for readers that see no image:\n%s", image)
	}
}

func TestDrawPlaces(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"text after a bar starts in the column after it": {
			"\x1b[32m██\x1b[0m 2", `<text x="40" y="29" fill="#e6edf3" textLength="8">2</text>`,
		},
		"a cell has its colour and its shade": {
			" \x1b[33m▒\x1b[0m", `<rect x="24" y="19" width="7" height="11" fill="#d29922" fill-opacity=".75"/>`,
		},
		"a heading is bold": {
			"\x1b[1ma\x1b[0m", `fill="#e6edf3" font-weight="bold" textLength="8">a</text>`,
		},
		"the second line is below the first":            {"a\nb", `<text x="16" y="47"`},
		"the image is as wide as its widest line":       {"a\nabcd", `width="64" height="68"`},
		"an unknown code leaves the colour of the text": {"\x1b[99ma", `fill="#e6edf3"`},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if image := svg.Draw(c.text, ""); !strings.Contains(image, c.want) {
				t.Errorf("want %s in\n%s", c.want, image)
			}
		})
	}
}

// A moving image has all of its texts, each in its time, and one of them where images do not move.
func TestAnimate(t *testing.T) {
	image := svg.Animate([]svg.Frame{{"one\nline more", 1}, {"two", 2}, {"three", 1}}, 1, "three texts")
	if got, want := strings.Join(read(t, image).texts, ","), "one,line more,two,three"; got != want {
		t.Errorf("texts are %s, want %s", got, want)
	}
	for _, want := range []string{
		`<g id="f1" class="f s">`, "#f1{animation:k1 4.0s", "25.00%{visibility:visible}75.00%,100%{visibility:hidden}",
		`height="68"`,
	} {
		if !strings.Contains(image, want) {
			t.Errorf("no %s in\n%s", want, image)
		}
	}
}

// The columns of a table stand where they stand on the screen.
func TestDrawColumns(t *testing.T) {
	image := svg.Draw("POD    FATE\nweb-a  in place", "a table")
	for _, want := range []string{
		`<text x="16" y="29" fill="#e6edf3" textLength="24">POD</text>`,
		`<text x="72" y="29" fill="#e6edf3" textLength="32">FATE</text>`,
		`<text x="72" y="47" fill="#e6edf3" textLength="64">in place</text>`,
	} {
		if !strings.Contains(image, want) {
			t.Errorf("no %s in\n%s", want, image)
		}
	}
}

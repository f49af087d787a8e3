package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Chart shows lines over a common axis.
type Chart struct {
	// Name is a part of the name of its file.
	Name, Title string
	// X and Y name the axes.
	X, Y string
	// Log has the steps of the horizontal axis grow tenfold.
	Log   bool
	Lines []Line
}

// Line is one line of a chart.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value.
type Point struct{ X, Y float64 }

const (
	width, height            = 720, 360
	left, right, top, bottom = 64, 24, 44, 80
	plotWidth, plotHeight    = width - left - right, height - top - bottom
	// steps of an axis.
	steps = 5
)

// colours of lines, in their order; told apart also by those who do not see red and green alike.
func colours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}
}

// SVG draws the chart.
func (c Chart) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" `+
		`font-family="system-ui,sans-serif" font-size="12" fill="#333">`+"\n<title>%[3]s</title>\n",
		width, height, text(c.Title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14" font-weight="bold">%s</text>`+"\n", left, text(c.Title))
	low, high, most := c.bounds()
	for i := range steps + 1 {
		part := float64(i) / steps
		y := top + plotHeight*(1-part)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`, left, width-right, y, y)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-6, y+4, number(most*part))
	}
	for _, tick := range c.ticks(low, high) {
		x := left + plotWidth*(c.at(tick)-low)/max(high-low, 1e-9)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, height-bottom+18, number(tick))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", width-right, height-bottom+34, text(c.X))
	fmt.Fprintf(&b, `<text x="%d" y="36">%s</text>`+"\n", left, text(c.Y))
	for i, line := range c.Lines {
		colour := colours()[i%len(colours())]
		var points []string
		for _, p := range line.Points {
			x := left + plotWidth*(c.at(p.X)-low)/max(high-low, 1e-9)
			points = append(points, fmt.Sprintf("%.1f,%.1f", x, top+plotHeight*(1-p.Y/most)))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
			strings.Join(points, " "), colour)
		x, y := left+i%3*plotWidth/3, height-bottom+52+i/3*14
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			x, y-9, colour, x+14, y, text(line.Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// bounds are the ends of the horizontal axis, as it is drawn, and the end of the vertical one, which begins at 0.
func (c Chart) bounds() (low, high, most float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, line := range c.Lines {
		for _, p := range line.Points {
			low, high, most = min(low, c.at(p.X)), max(high, c.at(p.X)), max(most, p.Y)
		}
	}
	if low > high {
		return 0, 1, 1
	}
	if !c.Log {
		low = min(low, 0)
	}
	return low, high, round(max(most, 1e-9))
}

// ticks are round numbers of the horizontal axis.
func (c Chart) ticks(low, high float64) (all []float64) {
	if !c.Log {
		step := round(max(high-low, 1e-9) / (2 * steps))
		for x := math.Ceil(low/step) * step; x <= high; x += step {
			all = append(all, x)
		}
		return all
	}
	for power := math.Pow(10, math.Floor(low)); c.at(power) <= high; power *= 10 {
		for _, x := range []float64{power, 2 * power, 5 * power} {
			if at := c.at(x); at >= low-1e-9 && at <= high+1e-9 {
				all = append(all, x)
			}
		}
	}
	return all
}

func (c Chart) at(x float64) float64 {
	if c.Log {
		return math.Log10(max(x, 1))
	}
	return x
}

// round is the next number that is 1, 2 or 5 times a power of ten.
func round(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, factor := range []float64{1, 2, 5} {
		if x <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}

// number is short.
func number(x float64) string {
	switch {
	case x >= 100 || x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	case x >= 1:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}

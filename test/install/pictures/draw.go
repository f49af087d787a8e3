package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
)

const (
	// column and row are the size of a cell of a dashboard, which has 24 columns; header is what is above its panels.
	column, row, header, margin = 50, 28, 40, 4
	// character is the width of a small character, roughly, and legendRows how many lines a legend has.
	character, legendRows = 5.7, 3
	// gap is how many steps without a point end a line.
	gap = 3

	style = `<style>
text{font-family:-apple-system,"Segoe UI","Helvetica Neue",Arial,"DejaVu Sans",sans-serif;fill:#1f2328}
.page{fill:#eef1f4}.panel{fill:#fff;stroke:#d0d7de}.title{font-size:11px;font-weight:600}
.small{font-size:10px;fill:#59636e}
.grid{stroke:#e2e6ea}.line{fill:none;stroke-width:1.4;stroke-linejoin:round}.area{stroke:none;fill-opacity:.15}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.panel{fill:#161b22;stroke:#30363d}
.small{fill:#9198a1}.grid{stroke:#2a3038}}
</style>
`
)

// colours of lines, on light and on dark ground.
func colours() []string {
	return []string{
		"#3f8fd2", "#e07b39", "#3fa66a", "#b665c9", "#d64f6b", "#9a9a2b", "#2ba7a7", "#a5784f", "#7a7fe0", "#d1a31f",
	}
}

// colour of a line.
func colour(i int) string { return colours()[i%len(colours())] }

// box is where something is drawn.
type box struct{ x, y, w, h float64 }

// plot is a box with the value at its upper edge.
type plot struct {
	box

	top float64
}

// picture is an SVG under way, of a time range.
type picture struct {
	bytes.Buffer
	from, to float64 // milliseconds
}

// draw draws a dashboard as SVG.
func draw(title string, panels []panel, from, to time.Time) []byte {
	p := &picture{from: float64(from.UnixMilli()), to: float64(to.UnixMilli())}
	height := 0
	for _, one := range panels {
		height = max(height, one.GridPos.Y+one.GridPos.H)
	}
	h := header + height*row + margin
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`,
		24*column, h)
	p.add("<title>%s</title>\n%s", escape(title), style)
	p.add(`<rect class="page" width="%d" height="%d"/>`, 24*column, h)
	p.add(`<text x="12" y="26" font-size="16" font-weight="600">%s</text>`, escape(title))
	p.add(`<text class="small" x="%d" y="26" text-anchor="end">%s, %s UTC and %.0f minutes</text>`, 24*column-12,
		from.UTC().Format(time.DateOnly), from.UTC().Format("15:04"), to.Sub(from).Minutes())
	for _, one := range panels {
		g := one.GridPos
		at := box{
			x: float64(g.X*column + margin), y: float64(header + g.Y*row + margin),
			w: float64(g.W*column - 2*margin), h: float64(g.H*row - 2*margin),
		}
		if one.Type == "row" {
			p.add(`<text x="%.0f" y="%.0f" font-size="13" font-weight="600">%s</text>`, at.x+8, at.y+15, escape(one.Title))
			continue
		}
		p.add(`<rect class="panel" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3"/>`, at.x, at.y, at.w, at.h)
		p.add(`<text class="title" x="%.1f" y="%.1f">%s</text>`, at.x+8, at.y+17, escape(shorten(one.Title, int(at.w/6.3))))
		switch {
		case len(one.series) == 0:
			p.add(`<text class="small" x="%.1f" y="%.1f" text-anchor="middle">no data</text>`, at.x+at.w/2, at.y+at.h/2)
		case one.Type == "stat":
			p.stat(one, at)
		default:
			p.lines(one, at)
		}
	}
	p.add("</svg>")
	return p.Bytes()
}

func (p *picture) add(format string, a ...any) { fmt.Fprintf(&p.Buffer, format+"\n", a...) }

// stat draws the last values, over their course.
func (p *picture) stat(one panel, at box) {
	top := highest(one.series)
	course := box{at.x + 1, at.y + at.h*0.62, at.w - 2, at.h*0.38 - 1}
	size := min(30, 60/float64(len(one.series)))
	for i, s := range one.series {
		ink := colour(i)
		p.path(s.points, plot{course, top}, fmt.Sprintf(`class="area" fill="%s"`, ink), true)
		p.path(s.points, plot{course, top}, fmt.Sprintf(`class="line" stroke="%s"`, ink), false)
		text := value(s.points[len(s.points)-1].F, one.FieldConfig.Defaults.Unit)
		p.add(`<text x="%.1f" y="%.1f" font-size="%.0f" font-weight="600" text-anchor="middle">%s `+
			`<tspan class="small">%s</tspan></text>`,
			at.x+at.w/2, at.y+24+size*(float64(i)+0.9), size, escape(text), escape(shorten(s.name, 24)))
	}
}

// lines draws a panel of the type timeseries.
func (p *picture) lines(one panel, at box) {
	unit := one.FieldConfig.Defaults.Unit
	below := p.legend(one.series, at)
	inside := box{at.x + 58, at.y + 28, at.w - 68, at.h - 28 - below - 20}
	step := niceStep(highest(one.series)/4, unit)
	top := step * math.Max(1, math.Ceil(highest(one.series)/step-1e-9))
	for v := 0.0; v <= top+step/2; v += step {
		y := inside.y + inside.h*(1-v/top)
		p.add(`<path class="grid" d="M%.1f %.1fh%.1f"/>`, inside.x, y, inside.w)
		p.add(`<text class="small" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, inside.x-5, y+3, escape(value(v, unit)))
	}
	every := niceMinutes(p.to - p.from)
	for t := math.Ceil(p.from/every) * every; t <= p.to; t += every {
		x := inside.x + inside.w*(t-p.from)/(p.to-p.from)
		p.add(`<text class="small" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
			x, inside.y+inside.h+14, time.UnixMilli(int64(t)).UTC().Format("15:04"))
	}
	for i, s := range one.series {
		p.path(s.points, plot{inside, top}, `class="line" `+stroke(i), false)
	}
}

func stroke(i int) string {
	text := fmt.Sprintf(`stroke="%s"`, colour(i))
	if dash := i / len(colours()) % 3; dash > 0 {
		text += fmt.Sprintf(` stroke-dasharray="%d 3"`, 8-3*dash)
	}
	return text
}

// legend draws the names of lines at the bottom, and returns its height.
func (p *picture) legend(all []series, at box) float64 {
	type entry struct {
		x    float64
		row  int
		name string
	}
	var entries []entry
	x, line, more := 0.0, 0, 0
	for i, s := range all {
		name := shorten(s.name, 36)
		if name == "" {
			continue
		}
		width := 22 + character*float64(len([]rune(name)))
		if x > 0 && x+width > at.w-16 {
			x, line = 0, line+1
		}
		if line >= legendRows || line == legendRows-1 && x+width > at.w-70 && i < len(all)-1 {
			more, line = len(all)-i, legendRows-1
			break
		}
		entries = append(entries, entry{x, line, name})
		x += width
	}
	if len(entries) == 0 {
		return 0
	}
	top := at.y + at.h - float64(line+1)*13
	for i, e := range entries {
		left, y := at.x+10+e.x, top+float64(e.row)*13
		p.add(`<path class="line" style="stroke-width:3" %s d="M%.1f %.1fh10"/>`, stroke(i), left, y+3)
		p.add(`<text class="small" x="%.1f" y="%.1f">%s</text>`, left+14, y+6, escape(e.name))
	}
	if more > 0 {
		p.add(`<text class="small" x="%.1f" y="%.1f" text-anchor="end">and %d more</text>`, at.x+at.w-8,
			top+(legendRows-1)*13+6, more)
	}
	return float64(line+1) * 13
}

// path draws the course of a line, and ends it where points are missing.
func (p *picture) path(points []promql.FPoint, at plot, attributes string, area bool) {
	top := at.top
	if top <= 0 {
		top = 1
	}
	usual := (p.to - p.from) / steps * gap
	var d strings.Builder
	var first, x, y float64
	open, flat := false, false // flat: the last point is as high as that before it, and not drawn yet
	draw := func() {
		if open && flat {
			fmt.Fprintf(&d, "H%.0f", x)
		}
		flat = false
	}
	end := func() {
		draw()
		if open && area {
			fmt.Fprintf(&d, "V%.0fH%.0fZ", at.y+at.h, first)
		}
		open = false
	}
	for i, point := range points {
		if math.IsNaN(point.F) || math.IsInf(point.F, 0) {
			end()
			continue
		}
		if i > 0 && float64(point.T-points[i-1].T) > math.Max(usual, 30_000) {
			end()
		}
		before := y
		if y = at.y + at.h*(1-math.Max(0, math.Min(1, point.F/top))); open && math.Abs(y-before) < 0.05 {
			x, flat = p.x(point.T, at.box), true
			continue
		}
		draw()
		x = p.x(point.T, at.box)
		if open {
			fmt.Fprintf(&d, "L%.0f %.1f", x, y)
		} else {
			fmt.Fprintf(&d, "M%.0f %.1fh.1", x, y)
			first, open = x, true
		}
	}
	end()
	if d.Len() > 0 {
		p.add(`<path %s d="%s"/>`, attributes, d.String())
	}
}

func (p *picture) x(moment int64, at box) float64 {
	return at.x + at.w*(float64(moment)-p.from)/(p.to-p.from)
}

// highest is the highest value of lines.
func highest(all []series) float64 {
	var top float64
	for _, s := range all {
		for _, point := range s.points {
			if !math.IsInf(point.F, 0) && !math.IsNaN(point.F) {
				top = math.Max(top, point.F)
			}
		}
	}
	return top
}

// niceStep is the least of 1, 2, 2.5 and 5, times a power of ten, that is not below a value; for bytes a power of two.
func niceStep(v float64, unit string) float64 {
	switch {
	case v <= 0:
		return 1
	case unit == "bytes":
		return math.Exp2(math.Ceil(math.Log2(v)))
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if v <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}

// niceMinutes is the distance of ticks of time, in milliseconds.
func niceMinutes(took float64) float64 {
	const minute = 60_000
	all := []float64{1, 2, 5, 10, 15, 30, 60, 120, 360}
	at := slices.IndexFunc(all, func(n float64) bool { return took/(n*minute) <= 7 })
	if at < 0 {
		at = len(all) - 1
	}
	return all[at] * minute
}

// value is a number in a unit of Grafana.
func value(v float64, unit string) string {
	scaled := func(base float64, names ...string) string {
		i := 0
		for math.Abs(v) >= base && i < len(names)-1 {
			v, i = v/base, i+1
		}
		return strings.TrimSpace(number(v) + " " + names[i])
	}
	switch unit {
	case "bytes":
		return scaled(1024, "B", "KiB", "MiB", "GiB")
	case "percentunit":
		return number(v*100) + "%"
	case "s":
		switch {
		case v != 0 && math.Abs(v) < 1e-3:
			return number(v*1e6) + " µs"
		case v != 0 && math.Abs(v) < 1:
			return number(v*1e3) + " ms"
		case math.Abs(v) >= 120:
			return number(v/60) + " min"
		}
		return number(v) + " s"
	case "ops", "reqps":
		return number(v) + map[string]string{"ops": " ops/s", "reqps": " req/s"}[unit]
	}
	return scaled(1000, "", "K", "Mil")
}

// number has three digits.
func number(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return "?"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

func shorten(text string, length int) string {
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length-1]) + "…"
	}
	return text
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

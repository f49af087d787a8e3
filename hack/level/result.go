package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// result is what is known of a package.
type result struct {
	name    string
	seconds float64
	cached  bool
	failed  bool
	output  strings.Builder // of no test
	tests   map[string]*test
}

// test is a test, or a subtest.
type test struct {
	name    string
	action  string // pass, fail, skip; empty while it runs
	seconds float64
	parent  bool            // of subtests
	output  strings.Builder // with that of its subtests
	last    string          // line of its own
}

// top returns the test that a subtest belongs to.
func top(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return name
}

func (p *result) test(name string) *test {
	t := p.tests[name]
	if t == nil {
		t = &test{name: name}
		p.tests[name] = t
		if at := strings.LastIndex(name, "/"); at > 0 {
			p.test(name[:at]).parent = true
		}
	}
	return t
}

func (p *result) print(e event) {
	if e.Test == "" {
		p.cached = p.cached || strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "(cached)")
		p.output.WriteString(e.Output)
		return
	}
	for _, mark := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(e.Output, mark) {
			return
		}
	}
	p.test(top(e.Test)).output.WriteString(e.Output)
	if text := strings.TrimSpace(e.Output); text != "" && !strings.HasPrefix(text, "--- ") {
		p.test(e.Test).last = text
	}
}

func (p *result) testEvent(e event) {
	t := p.test(e.Test)
	switch e.Action {
	case "pass", "fail", "skip":
		t.action, t.seconds = e.Action, e.Elapsed
		if e.Action == "pass" && e.Test == top(e.Test) {
			t.output.Reset()
		}
	}
}

// counts are of tests without subtests.
type counts struct{ passed, failed, skipped int }

func (p *result) count() (c counts) {
	for _, t := range p.tests {
		switch {
		case t.parent && t.action != "skip":
		case t.action == "pass":
			c.passed++
		case t.action == "skip":
			c.skipped++
		default:
			c.failed++
		}
	}
	if p.failed && c.failed == 0 { // a test with subtests, or the package itself
		c.failed++
	}
	return c
}

// longest names the test that took longest, if one takes a second or more.
func (p *result) longest() string {
	var longest *test
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		if t := p.tests[name]; !t.parent && t.seconds >= listed && (longest == nil || t.seconds > longest.seconds) {
			longest = t
		}
	}
	if longest == nil {
		return ""
	}
	return fmt.Sprintf(" (longest: %s, %.1f s)", longest.name, longest.seconds)
}

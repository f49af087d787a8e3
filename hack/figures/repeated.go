package main

import (
	"go/token"
	"strings"
)

// window is how many lines of code two places must have in common.
const window = 8

// repeated returns how many lines of code belong to a run of at least eight lines that stands in another place too.
// Package clauses and imports do not count. Lines are the same if their tokens are.
func repeated(files []source) int {
	places := map[string]int{}
	for _, f := range files {
		windows(f, func(_ int, text string) { places[text]++ })
	}
	n := 0
	for _, f := range files {
		end := 0 // of the runs before
		windows(f, func(at int, text string) {
			if places[text] > 1 {
				n += at + window - max(at, end)
				end = at + window
			}
		})
	}
	return n
}

// windows passes each run of eight lines of a file, with the place where the run begins.
func windows(f source, visit func(at int, text string)) {
	body := bodyOf(f.code)
	for at := 0; at+window <= len(body); at++ {
		visit(at, strings.Join(body[at:at+window], "\n"))
	}
}

// bodyOf returns the lines that follow the imports.
func bodyOf(code []codeLine) []string {
	var body []string
	block := false
	for _, l := range code {
		first, _, _ := strings.Cut(l.tokens, " ")
		switch {
		case block:
			block = l.tokens != ")"
		case len(body) == 0 && (first == token.PACKAGE.String() || first == token.IMPORT.String()):
			block = l.tokens == "import ("
		default:
			body = append(body, l.tokens)
		}
	}
	return body
}

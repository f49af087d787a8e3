package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// source is a Go file of the tree.
type source struct {
	// path is that below the root, with slashes.
	path string
	text string
	// code are the lines that have more than comments.
	code []codeLine
}

// codeLine is a line of code: its tokens, separated by spaces. Neither comments nor layout distinguish lines.
type codeLine struct {
	number int
	tokens string
}

// readTree reads the Go files below the root, those of nested modules too. It skips generated files and the directories
// that the go command ignores.
func readTree(root string) ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && ignored(name):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || generated.Match(text) {
			return err
		}
		below, err := filepath.Rel(root, path)
		all = append(all, source{filepath.ToSlash(below), string(text), codeOf(text)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	return all, nil
}

// generated matches the line by which a generator marks its files.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func ignored(name string) bool {
	return name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// codeOf returns the lines of a file that have code. A raw string has a line of code where its line is not blank.
func codeOf(text []byte) []codeLine {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, 0)
	var code []codeLine
	for {
		at, tok, literal := s.Scan()
		if tok == token.EOF {
			return code
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		if literal == "" {
			literal = tok.String()
		}
		for i, part := range strings.Split(literal, "\n") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			line := file.Line(at) + i
			if n := len(code); n > 0 && code[n-1].number == line {
				code[n-1].tokens += " " + part
				continue
			}
			code = append(code, codeLine{line, part})
		}
	}
}

// whole matches lines that cannot be broken: text in backquotes, markers and addresses. It is what .golangci.yml has
// for the linter lll.
var whole = regexp.MustCompile("`|^\\s*// ?\\+|https?://")

// wider returns how many lines of the files have more columns than a bound, and can be broken. A tab is one column, as
// for the linter lll.
func wider(files []source, columns int) int {
	n := 0
	for _, f := range files {
		for line := range strings.Lines(f.text) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\r\n")) > columns && !whole.MatchString(line) {
				n++
			}
		}
	}
	return n
}

// lines returns how many lines of code the files have.
func lines(files []source) int {
	n := 0
	for _, f := range files {
		n += len(f.code)
	}
	return n
}

// Voice refuses words that make this project's English hard to read, in the comments of exported symbols and in
// documents.
//
//	go run ./hack/voice
//
// It exits with 1 when a word of the list stands where it is refused.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	findings, err := check(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "voice:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	fmt.Printf("voice: %d findings\n", len(findings))
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// check returns the findings in a tree, sorted by file and line.
func check(tree fs.FS) ([]finding, error) {
	var all []finding
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if name == "testdata" || name == "bin" || name == "node_modules" || path != "." && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		}
		read := reader(path)
		if read == nil {
			return nil
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		found, err := read(path, text)
		all = append(all, found...)
		return err
	})
	return all, err
}

// reader returns how the texts of a file are found; nil where the file has none.
func reader(path string) func(path string, text []byte) ([]finding, error) {
	switch base := filepath.Base(path); {
	case base == "CHANGELOG.md": // history keeps its words
		return nil
	case strings.HasSuffix(base, ".md"):
		return ofDocument
	case strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_generated"):
		return nil
	case strings.HasSuffix(base, ".go"):
		return ofCode
	}
	return nil
}

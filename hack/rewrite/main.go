// Command rewrite moves the Go files of a tree from the packages of OpenKruise to those of this repository. It changes
// import paths and identifiers that have another place or name here, and reports what has no counterpart.
//
//	go run ./hack/rewrite DIRECTORY         # report what would change
//	go run ./hack/rewrite -write DIRECTORY  # change it
//
// It reads names, not types: build the tree afterwards.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "change the files")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: rewrite [-write] DIRECTORY")
		os.Exit(2)
	}
	left, err := tree(flag.Arg(0), *write, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if left > 0 {
		os.Exit(1)
	}
}

// tree rewrites the files of a directory, and returns how many findings are left to the user.
func tree(root string, write bool, out io.Writer) (left int, err error) {
	names, err := load()
	if err != nil {
		return 0, err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(path, root, entry.Name())
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read source: %w", err)
		}
		changed, findings, err := names.file(path, source)
		if err != nil {
			return err
		}
		for _, f := range findings {
			fmt.Fprintln(out, f)
			if f.left {
				left++
			}
		}
		if !write || changed == nil {
			return nil
		}
		return os.WriteFile(path, changed, entry.Type().Perm()|0o644)
	})
	if err != nil {
		return left, fmt.Errorf("rewrite %s: %w", root, err)
	}
	return left, nil
}

// skip leaves out the directories that the go command leaves out.
func skip(path, root, name string) error {
	if path != root && (name == "vendor" || strings.HasPrefix(name, ".")) {
		return fs.SkipDir
	}
	return nil
}

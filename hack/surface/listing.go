package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// listingDir has one file per public package, at the path of the package.
const listingDir = "hack/surface/listing"

// listingOf returns the lines of each file of the listing. A package that exports nothing has no file.
func listingOf(surfaces []exported.Surface) map[string][]string {
	files := map[string][]string{}
	for _, s := range surfaces {
		for _, i := range s.Identifiers {
			files[s.Path+".txt"] = append(files[s.Path+".txt"], i.Text)
		}
	}
	return files
}

// readListing returns the lines of each file of the listing on disk.
func readListing(root string) (map[string][]string, error) {
	files := map[string][]string{}
	dir := filepath.Join(root, listingDir)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read listing: %w", err)
	}
	return files, nil
}

// compareListing returns the lines that differ between the tree and its listing.
func compareListing(tree, listed map[string][]string) []string {
	var findings []string
	names := slices.Concat(slices.Collect(maps.Keys(tree)), slices.Collect(maps.Keys(listed)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.Equal(tree[name], listed[name]) {
			continue
		}
		before := len(findings)
		for _, line := range lacking(listed[name], tree[name]) {
			findings = append(findings, fmt.Sprintf("%s/%s: - %s", listingDir, name, line))
		}
		for _, line := range lacking(tree[name], listed[name]) {
			findings = append(findings, fmt.Sprintf("%s/%s: + %s", listingDir, name, line))
		}
		if len(findings) == before {
			findings = append(findings, fmt.Sprintf("%s/%s: the order of the lines differs", listingDir, name))
		}
	}
	if len(findings) > 0 {
		findings = append(findings, "the public API changed: run `make surface`, and add a line to "+changelog)
	}
	return findings
}

// lacking returns the lines that another list lacks.
func lacking(lines, other []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(other, l) })
}

// writeListing replaces the listing on disk.
func writeListing(root string, files map[string][]string) error {
	dir := filepath.Join(root, listingDir)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove listing: %w", err)
	}
	for name, lines := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write listing: %w", err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return fmt.Errorf("write listing: %w", err)
		}
	}
	return nil
}

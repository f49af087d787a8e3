package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// knownFile has one breach a line; lines that begin with # are comments.
const knownFile = "hack/surface/known.txt"

// breaches describes the exported identifiers that mention types of internal packages, sorted.
func breaches(surfaces []exported.Surface) []string {
	var found []string
	for _, s := range surfaces {
		for _, i := range s.Identifiers {
			for _, mentioned := range i.Mentions {
				found = append(found, fmt.Sprintf("%s.%s mentions %s", s.Path, i.Name, mentioned))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// compareBreaches returns the breaches that are not known, and the known ones that are mended.
func compareBreaches(found, known []string) []string {
	var findings []string
	for _, b := range found {
		if !slices.Contains(known, b) {
			findings = append(findings, b+", which an embedder cannot name")
		}
	}
	for _, b := range known {
		if !isComment(b) && !slices.Contains(found, b) {
			findings = append(findings, knownFile+": remove the line, for the breach is mended: "+b)
		}
	}
	return findings
}

func isComment(line string) bool { return line == "" || strings.HasPrefix(line, "#") }

// readKnown returns the lines of the file with the known breaches. A module without the file has none.
func readKnown(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, knownFile))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read known breaches: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// shrinkKnown removes the known breaches that are mended. It adds none.
func shrinkKnown(root string, found []string) error {
	known, err := readKnown(root)
	if err != nil || known == nil {
		return err
	}
	kept := slices.DeleteFunc(known, func(b string) bool { return !isComment(b) && !slices.Contains(found, b) })
	if err := os.WriteFile(filepath.Join(root, knownFile), []byte(strings.Join(kept, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("write known breaches: %w", err)
	}
	return nil
}

package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

const changelog = "CHANGELOG.md"

// silentChanges returns the changes of the listing without a change of CHANGELOG.md: uncommitted ones, and
// those of the newest commit that changes the listing. A tree without history has none.
func silentChanges(root string) ([]string, error) {
	if prefix, err := git(root, "rev-parse", "--show-prefix"); err != nil || prefix != nil {
		return nil, nil //nolint:nilerr // no git, no repository, or a tree inside of another one
	}
	newest, err := git(root, "log", "-1", "--format=%H", "--", listingDir)
	if err != nil {
		return nil, nil //nolint:nilerr // no commit yet
	}
	var findings []string
	changed, err := git(root, "status", "--porcelain", "--no-renames", "-uall", "--", listingDir, changelog)
	if err != nil {
		return nil, err
	}
	for i, line := range changed {
		changed[i] = line[3:] // after two letters of status
	}
	if silent(changed) {
		findings = append(findings, listingDir+" differs from the last commit: add a line to "+changelog)
	}
	if len(newest) == 0 {
		return findings, nil
	}
	show := []string{"diff-tree", "--root", "-m", "-r", "--no-commit-id", "--no-renames", "--name-only", newest[0]}
	committed, err := git(root, show...)
	if err != nil {
		return nil, err
	}
	if silent(committed) && !slices.Contains(changed, changelog) {
		finding := fmt.Sprintf("commit %.12s changes %s without a line in %s", newest[0], listingDir, changelog)
		findings = append(findings, finding)
	}
	return findings, nil
}

// silent reports whether changed files are some of the listing without the changelog.
func silent(changed []string) bool {
	inListing := func(f string) bool { return strings.HasPrefix(f, listingDir+"/") }
	return slices.ContainsFunc(changed, inListing) && !slices.Contains(changed, changelog)
}

// git returns the lines of the output of a git command.
func git(root string, args ...string) ([]string, error) {
	cmd := exec.Command("git", append([]string{"-c", "core.quotePath=false"}, args...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	text := strings.TrimRight(string(out), "\n")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\n"), nil
}

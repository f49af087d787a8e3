package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a module with one known breach, below a directory that belongs to the test.
type tree struct {
	*testing.T

	root string
}

func newTree(t *testing.T) tree {
	t.Helper()
	tr := tree{t, t.TempDir()}
	tr.put("go.mod", "module example.com/m\n\ngo 1.25.0\n")
	tr.put("internal/x/x.go", "package x\n\ntype T int\n")
	tr.put("a/a.go", "package a\n\nimport \"example.com/m/internal/x\"\n\nvar V x.T\n")
	tr.put("b/c/c.go", "package c\n\nvar V int\n")
	tr.put("CHANGELOG.md", "# Changelog\n")
	tr.put(knownFile, "# Known.\na.V mentions internal/x.T\n")
	tr.write()
	return tr
}

func (tr tree) put(name, text string) {
	tr.Helper()
	path := filepath.Join(tr.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tr.Fatal(err)
	}
}

func (tr tree) write(want ...string) {
	tr.Helper()
	got, err := write(tr.root)
	tr.compare(got, err, want)
}

func (tr tree) check(want ...string) {
	tr.Helper()
	got, err := check(tr.root)
	tr.compare(got, err, want)
}

func (tr tree) compare(got []string, err error, want []string) {
	tr.Helper()
	if err != nil {
		tr.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		tr.Errorf("findings differ (-want +got):\n%s", diff)
	}
}

// commit commits the whole tree.
func (tr tree) commit() string {
	tr.Helper()
	tr.git("add", "-A")
	tr.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--no-gpg-sign", "-m", "change")
	return tr.git("rev-parse", "--short=12", "HEAD")
}

func (tr tree) git(args ...string) string {
	tr.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = tr.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		tr.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

const advice = "the public API changed: run `make surface`, and add a line to CHANGELOG.md"

func TestBreaches(t *testing.T) {
	tr := newTree(t)
	tr.check()
	tr.put("b/c/c.go", "package c\n\nimport \"example.com/m/internal/x\"\n\nvar V x.T\n")
	const breach = "b/c.V mentions internal/x.T, which an embedder cannot name"
	tr.write(breach)
	tr.check(breach)

	tr.put("a/a.go", "package a\n\nvar V int\n")
	tr.put("b/c/c.go", "package c\n\nvar V int\n")
	tr.check(knownFile+": remove the line, for the breach is mended: a.V mentions internal/x.T",
		listingDir+"/a.txt: - var V x.T", listingDir+"/a.txt: + var V int",
		listingDir+"/b/c.txt: - var V x.T", listingDir+"/b/c.txt: + var V int", advice)
	tr.write()
	tr.check()
	if text, err := os.ReadFile(filepath.Join(tr.root, knownFile)); err != nil || string(text) != "# Known.\n" {
		t.Errorf("known breaches: %q, %v", text, err)
	}
}

func TestListing(t *testing.T) {
	tr := newTree(t)
	tr.put("b/c/c.go", "package c\n\nvar V, W int\n")
	tr.check(listingDir+"/b/c.txt: + var W int", advice)
	if err := os.RemoveAll(filepath.Join(tr.root, "b")); err != nil {
		t.Fatal(err)
	}
	tr.check(listingDir+"/b/c.txt: - var V int", advice)
	tr.write()
	tr.check()
	tr.put(listingDir+"/a.txt", "var V x.T\nvar V x.T\n")
	tr.check(listingDir+"/a.txt: the order of the lines differs", advice)
}

func TestHistory(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	tr := newTree(t)
	tr.git("init", "-q")
	tr.check() // no commit yet
	tr.commit()
	tr.check()

	tr.put("b/c/c.go", "package c\n\nvar V, W int\n")
	tr.write()
	tr.check(listingDir + " differs from the last commit: add a line to CHANGELOG.md")
	silent := tr.commit()
	tr.put("b/c/c.go", "package c\n\nvar V, W int // a comment\n")
	tr.commit()
	tr.check("commit " + silent + " changes " + listingDir + " without a line in CHANGELOG.md")

	tr.put("b/c/c.go", "package c\n\nvar W int\n")
	tr.put("CHANGELOG.md", "# Changelog\n\n- c.V is gone.\n")
	tr.write()
	tr.check()
	tr.commit()
	tr.check()
	tr.put("d/d.go", "package d\n\nvar V int\n")
	tr.write()
	tr.check(listingDir + " differs from the last commit: add a line to CHANGELOG.md")
}

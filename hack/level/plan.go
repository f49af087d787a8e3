package main

import (
	"fmt"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	unit      = "unit"
	envtest   = "envtest"
	simulated = "simulated"
	e2e       = "e2e"

	// machine has the tests that start and destroy the cluster of real nodes, of which a machine can have one.
	machine = "./test/cluster/nodes"
	// bubbles is the package that runs tests in bubbles of testing/synctest.
	bubbles = "github.com/kruisekit/kruisekit/daemon/internal/bubbletest"
)

// testFile is a file of tests.
type testFile struct {
	dir     string
	tags    []string // that its build constraint names, such as envtest or !race
	tests   []string
	imports []string
}

// invocation is one run of go test.
type invocation struct {
	flags []string
	tests []string // all if empty
	dirs  []string
}

func (i invocation) arguments(flags []string) []string {
	all := slices.Clone(i.flags)
	if len(i.tests) > 0 {
		all = append(all, "-run", "^("+strings.Join(i.tests, "|")+")$")
	}
	// The flags of the caller come later, and so count.
	return slices.Concat(all, flags, i.dirs)
}

// plan returns what a level runs.
//
// The unit level runs under the race detector, and a second time without it the packages with tests that the detector would
// crash, see daemon/internal/bubbletest.
//
// The levels with a cluster run without the detector, which would take most of their time: what they compute is in part the
// work of other processes, and what is ours the unit level runs under the detector. The packages with bubbles are the exception,
// for only an API server shows the detector their concurrent code.
func plan(level string, files []testFile) ([]invocation, error) {
	inBubbles := slices.DeleteFunc(slices.Clone(files), func(f testFile) bool { return !slices.Contains(f.imports, bubbles) })
	if level == unit {
		runs := []invocation{{flags: []string{"-race"}, dirs: []string{"./..."}}}
		if len(inBubbles) > 0 {
			runs = append(runs, invocation{dirs: dirsOf(inBubbles)})
		}
		return runs, nil
	}
	if !slices.Contains([]string{envtest, simulated, e2e}, level) {
		return nil, fmt.Errorf("unknown level %q", level)
	}
	var plain, raced, alone []testFile
	for _, f := range files {
		switch {
		case !slices.Contains(f.tags, level):
		case level == e2e && f.dir == machine:
			alone = append(alone, f)
		case level == envtest && slices.Contains(dirsOf(inBubbles), f.dir):
			raced = append(raced, f)
		default:
			plain = append(plain, f)
		}
	}
	var runs []invocation
	// Never cached: the outcome depends on binaries and a kernel that the go command does not know.
	flags := []string{"-count=1", "-tags", level}
	if len(plain) > 0 {
		runs = append(runs, invocation{flags: flags, tests: testsOf(plain), dirs: dirsOf(plain)})
	}
	if len(raced) > 0 {
		runs = append(runs, invocation{flags: append([]string{"-race"}, flags...), tests: testsOf(raced), dirs: dirsOf(raced)})
	}
	if len(alone) > 0 {
		runs = append(runs, invocation{flags: flags, tests: testsOf(alone), dirs: dirsOf(alone)})
	}
	return runs, nil
}

func testsOf(files []testFile) []string {
	all := map[string]bool{}
	for _, f := range files {
		for _, test := range f.tests {
			all[test] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func dirsOf(files []testFile) []string {
	all := map[string]bool{}
	for _, f := range files {
		all[f.dir] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// findTests reads the test files of the module.
func findTests(root string) ([]testFile, error) {
	var files []testFile
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && skipped(path, entry.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parseTest(content)
		file.dir = "./" + filepath.ToSlash(filepath.Dir(path))
		files = append(files, file)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	return files, nil
}

// skipped reports whether the go command does not look into a directory.
func skipped(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod")) // another module
	return err == nil
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)[A-Za-z0-9_]*)\(`)

func parseTest(content []byte) (testFile, error) {
	var file testFile
	parsed, err := parser.ParseFile(token.NewFileSet(), "", content, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return file, err
	}
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			if comment.Pos() > parsed.Package || !constraint.IsGoBuild(comment.Text) {
				continue
			}
			expression, err := constraint.Parse(comment.Text)
			if err != nil {
				return file, err
			}
			file.tags = tagsOf(expression)
		}
	}
	for _, imported := range parsed.Imports {
		path, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			return file, err
		}
		file.imports = append(file.imports, path)
	}
	for _, match := range testName.FindAllSubmatch(content, -1) {
		if name := string(match[1]); name != "TestMain" {
			file.tests = append(file.tests, name)
		}
	}
	return file, nil
}

// tagsOf returns the tags of a constraint, those that must be absent with an exclamation mark.
func tagsOf(e constraint.Expr) []string {
	switch e := e.(type) {
	case *constraint.TagExpr:
		return []string{e.Tag}
	case *constraint.NotExpr:
		tags := tagsOf(e.X)
		for i := range tags {
			tags[i] = "!" + tags[i]
		}
		return tags
	case *constraint.AndExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	case *constraint.OrExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	}
	return nil
}

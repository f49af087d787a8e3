package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTest(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    testFile
	}{
		"tests, examples and fuzz tests count, TestMain and helpers do not": {
			"package x\n\nfunc TestMain(m *testing.M) {}\nfunc TestA(t *testing.T) {}\nfunc ExampleB() {}\nfunc FuzzC(f *testing.F) {}\nfunc help() {}\n",
			testFile{tests: []string{"TestA", "ExampleB", "FuzzC"}},
		},
		"a constraint may have several tags, also negated": {
			"//go:build envtest && linux && !race\n\npackage x\n\nfunc TestA(t *testing.T) {}\n",
			testFile{tags: []string{"envtest", "linux", "!race"}, tests: []string{"TestA"}},
		},
		"tests in bubbles import a package": {
			"package x\n\nimport (\n\t\"" + bubbles + "\"\n)\n", testFile{imports: []string{bubbles}},
		},
		"a constraint below the package clause is none": {"package x\n\n//go:build e2e\n", testFile{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTest([]byte(test.content))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(testFile{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	files := []testFile{
		{dir: "./a", tests: []string{"TestA"}},
		{dir: "./a", tags: []string{"envtest"}, tests: []string{"TestAPI"}},
		{dir: "./b", imports: []string{bubbles}, tests: []string{"TestBubble"}},
		{dir: "./b", tags: []string{"envtest", "linux"}, tests: []string{"TestBAPI"}},
		{dir: "./c", tags: []string{"e2e", "linux"}, tests: []string{"TestReal"}},
		{dir: "./test/cluster/nodes", tags: []string{"e2e"}, tests: []string{"TestUp"}},
	}
	for name, test := range map[string]struct {
		level string
		flags []string
		want  []string
	}{
		"the unit level runs bubbles without the race detector": {unit, nil, []string{
			"-race ./...", "./b",
		}},
		"the packages of bubbles alone meet the API server with the race detector": {envtest, nil, []string{
			"-count=1 -tags envtest -run ^(TestAPI)$ ./a", "-race -count=1 -tags envtest -run ^(TestBAPI)$ ./b",
		}},
		"flags of the caller count": {e2e, []string{"-run", "TestX"}, []string{
			"-count=1 -tags e2e -run ^(TestReal)$ -run TestX ./c", "-count=1 -tags e2e -run ^(TestUp)$ -run TestX ./test/cluster/nodes",
		}},
		"a level without tests runs nothing": {simulated, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			runs, err := plan(test.level, slices.Clone(files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range runs {
				got = append(got, strings.Join(r.arguments(test.flags), " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := plan("other", files); err == nil {
		t.Error("an unknown level has a plan")
	}
}

// The module's own files: each level has tests, none of them is in testdata or in a nested module, and bubbles are used through
// the package that keeps them from the race detector.
func TestFindTests(t *testing.T) {
	files, err := findTests("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{envtest, simulated, e2e} {
		if !slices.ContainsFunc(files, func(f testFile) bool { return slices.Contains(f.tags, level) }) {
			t.Errorf("no test of level %s was found", level)
		}
	}
	for _, f := range files {
		if strings.Contains(f.dir, "testdata") || strings.Contains(f.dir, "hack/tools") {
			t.Errorf("%s is not a package of the module", f.dir)
		}
		if slices.Contains(f.imports, "testing/synctest") {
			t.Errorf("a test of %s imports testing/synctest: use daemon/internal/bubbletest", f.dir)
		}
	}
}

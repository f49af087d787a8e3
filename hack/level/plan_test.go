package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    file
	}{
		"tests, examples and fuzz tests count, TestMain and helpers do not": {
			"package x\n\nfunc TestMain(m *testing.M) {}\nfunc TestA(t *testing.T) {}\nfunc ExampleB() {}\n" +
				"func FuzzC(f *testing.F) {}\nfunc help() {}\n",
			file{tests: []string{"TestA", "ExampleB", "FuzzC"}},
		},
		"a constraint may have several tags, also negated": {
			"//go:build envtest && linux && !race\n\npackage x\n\nfunc TestA(t *testing.T) {}\n",
			file{tags: []string{"envtest", "linux", "!race"}, tests: []string{"TestA"}},
		},
		"tests in bubbles import a package": {
			"package x\n\nimport (\n\t\"" + bubbles + "\"\n)\n", file{imports: []string{bubbles}},
		},
		"a go statement makes a file concurrent": {"package x\n\nfunc f() { go f() }\n", file{concurrent: true}},
		"so does a parallel test": {
			"package x\n\nfunc TestA(t *testing.T) { t.Parallel() }\n", file{concurrent: true, tests: []string{"TestA"}},
		},
		"a name alone starts nothing":                   {"package x\n\nfunc f(v int) bool { return v == p.Go }\n", file{}},
		"a constraint below the package clause is none": {"package x\n\n//go:build e2e\n", file{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(test.content))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(file{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	files := []file{
		{dir: "./a", test: true, tests: []string{"TestA"}},
		{dir: "./a", test: true, tags: []string{"envtest"}, tests: []string{"TestAPI"}},
		{dir: "./b", concurrent: true},
		{dir: "./b", test: true, imports: []string{bubbles}, tests: []string{"TestBubble"}},
		{dir: "./b", test: true, tags: []string{"envtest", "linux"}, tests: []string{"TestBAPI"}},
		{dir: "./c", test: true, tags: []string{"e2e", "linux"}, tests: []string{"TestReal"}},
		{dir: "./d", test: true, tags: []string{"nightly", "linux"}, tests: []string{"TestUp"}},
	}
	for name, test := range map[string]struct {
		level string
		flags []string
		want  []string
	}{
		"the unit level runs under the race detector what could race, and bubbles also without it": {unit, nil, []string{
			"-vet=off -race ./b", "-vet=off ./a ./b",
		}},
		"the race level runs all of it under the race detector": {race, nil, []string{"-vet=off -race ./a ./b"}},
		"the packages of bubbles alone meet the API server with the race detector": {envtest, nil, []string{
			"-vet=off -count=1 -tags envtest -run ^(TestAPI)$ ./a",
			"-vet=off -race -count=1 -tags envtest -run ^(TestBAPI)$ ./b",
		}},
		"flags of the caller count": {e2e, []string{"-run", "TestX"}, []string{
			"-vet=off -count=1 -tags e2e -run ^(TestReal)$ -run TestX ./c",
		}},
		"the nightly level has tests of its own": {
			nightly, nil, []string{"-vet=off -count=1 -tags nightly -run ^(TestUp)$ ./d"},
		},
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

func TestConcurrent(t *testing.T) {
	for name, c := range map[string]struct {
		files []file
		want  bool
	}{
		"values in, values out":      {[]file{{dir: "./x"}, {dir: "./x", test: true}}, false},
		"a package with goroutines":  {[]file{{dir: "./x", concurrent: true}}, true},
		"tests that run in parallel": {[]file{{dir: "./x", test: true, concurrent: true}}, true},
		"tests of another level do not count": {
			[]file{{dir: "./x", test: true, tags: []string{envtest}, concurrent: true}}, false,
		},
		"an import does not count": {
			[]file{{dir: "./x", imports: []string{module + "y"}}, {dir: "./y", concurrent: true}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slices.Contains(concurrent(c.files), "./x"); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

// The module's own files: each level has tests, none of them is in testdata or in a nested module, and bubbles are used
// through the package that keeps them from the race detector.
func TestReadModule(t *testing.T) {
	files, err := readModule("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{envtest, simulated, e2e} {
		if !slices.ContainsFunc(files, func(f file) bool { return slices.Contains(f.tags, level) }) {
			t.Errorf("no test of level %s was found", level)
		}
	}
	raced := concurrent(files)
	for dir, want := range map[string]bool{
		"./scale": false, "./ledger": true, "./driver/runtimeclient": true, "./internal/memory": true, "./webhooks/pod": true,
	} {
		if got := slices.Contains(raced, dir); got != want {
			t.Errorf("%s runs under the race detector: %t, want %t", dir, got, want)
		}
	}
	for _, f := range files {
		if strings.Contains(f.dir, "testdata") || strings.Contains(f.dir, "hack/tools") {
			t.Errorf("%s is not a package of the module", f.dir)
		}
		if slices.Contains(f.imports, "testing/synctest") && module+strings.TrimPrefix(f.dir, "./") != bubbles {
			t.Errorf("a test of %s imports testing/synctest: use test/bubbletest", f.dir)
		}
	}
}

// What lacks the race detector without a C compiler: the levels that run packages under it, and no other.
func TestRaces(t *testing.T) {
	for why, c := range map[string]struct {
		runs []invocation
		want bool
	}{
		"one of the runs is under the detector": {
			[]invocation{{flags: []string{"-count=1"}}, {flags: []string{"-race", "-count=1"}}}, true,
		},
		"no run is":       {[]invocation{{flags: []string{"-count=1"}}}, false},
		"there is no run": {nil, false},
	} {
		t.Run(why, func(t *testing.T) {
			if got := races(c.runs); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

// A test binary has the arguments of go test that are not of the go command.
func TestOfBinary(t *testing.T) {
	for level, want := range map[string]string{
		unit:    "-test.count=1 -test.timeout=20m",
		envtest: "-test.count=1 -test.timeout=20m '-test.run=^(TestA|TestB)$' -test.timeout=20m",
		e2e:     "-test.count=1 -test.timeout=20m '-test.run=^(TestA|TestB)$' -test.parallel=16 -test.timeout=45m",
	} {
		i := invocation{tests: []string{"TestA", "TestB"}}
		if level == unit {
			i.tests = nil
		}
		if got := strings.Join(i.ofBinary(usualFlags(level)), " "); got != want {
			t.Errorf("%s: %s, want %s", level, got, want)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flakyTests fail in a first run. One passes in the second, and one is skipped there.
const flakyTests = `package x

import (
	"os"
	"testing"
)

func again() bool {
	_, err := os.Stat("ran")
	return err == nil
}

func TestFlaky(t *testing.T) {
	if !again() {
		os.WriteFile("ran", nil, 0o600)
		t.Error("the first run")
	}
}

func TestOther(t *testing.T) {}

func TestParent(t *testing.T) {
	_, err := os.Stat("parent")
	t.Run("passes/with a slash", func(t *testing.T) {
		if err == nil {
			t.Error("a subtest that has passed runs again")
		}
	})
	t.Run("fails once (a+b)", func(t *testing.T) {
		if err != nil && os.Getenv("PARENT") != "" {
			os.WriteFile("parent", nil, 0o600)
			t.Error("the first run")
		}
	})
}

func TestBroken(t *testing.T) {
	if os.Getenv("BROKEN") != "" {
		t.Error("each run")
	}
}

func TestSkips(t *testing.T) {
	switch _, err := os.Stat("skip"); {
	case os.Getenv("SKIPS") == "":
	case err == nil:
		t.Skip("not again")
	default:
		os.WriteFile("skip", nil, 0o600)
		t.Error("the first run")
	}
}
`

// A test that fails once is flaky and named. One that fails twice, or is skipped the second time, stays failed.
func TestRetry(t *testing.T) {
	cases := map[string]struct {
		env    string
		passed bool
		failed int
		flaky  string
	}{
		"a test that fails once": {passed: true, flaky: "x TestFlaky"},
		"a subtest that fails once": {
			env: "PARENT", passed: true, flaky: "x TestFlaky,x TestParent/fails_once_(a+b)",
		},
		"a test that fails twice":                {env: "BROKEN", failed: 2},
		"a test that is skipped the second time": {env: "SKIPS", failed: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for file, content := range map[string]string{
				"go.mod": "module " + strings.TrimSuffix(module, "/") + "\n\ngo 1.25\n", "x/x_test.go": flakyTests,
			} {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.env != "" {
				t.Setenv(c.env, "1")
			}
			var out strings.Builder
			s, r := session{out: &out}, newReport(&out, false)
			run := invocation{dirs: []string{"./x"}}
			if ok, err := goTest(t.Context(), r, run.arguments(nil)); ok || err != nil {
				t.Fatalf("the first run: %t, %v\n%s", ok, err, &out)
			}
			passed, err := s.retry(t.Context(), r, []invocation{run}, nil)
			o := r.outcome(unit)
			if err != nil || passed != c.passed || o.counts.failed != c.failed || strings.Join(o.flaky, ",") != c.flaky {
				t.Errorf("passed %t, %v, outcome %+v, want %+v\n%s", passed, err, o, c, &out)
			}
			if !strings.Contains(out.String(), "the first run") {
				t.Errorf("the failure is not printed:\n%s", &out)
			}
		})
	}
}

// Many failures, and failures outside of tests, are not retried.
func TestFailures(t *testing.T) {
	failed := func(names ...string) *report {
		p := &result{name: "x", failed: true, tests: map[string]*test{}}
		for _, name := range names {
			p.test(name).action = "fail"
		}
		return &report{packages: map[string]*result{module + "x": p}}
	}
	cases := map[string]struct {
		r    *report
		want bool
	}{
		"one test":           {failed("TestA", "TestA/sub"), true},
		"three tests":        {failed("TestA", "TestB", "TestC"), true},
		"four tests":         {failed("TestA", "TestB", "TestC", "TestD"), false},
		"no test, a package": {failed(), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, can := c.r.failures(); can != c.want {
				t.Errorf("retried: %t", can)
			}
		})
	}
}

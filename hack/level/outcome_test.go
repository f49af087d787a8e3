package main

import (
	"errors"
	"strings"
	"testing"
)

// The last lines of a run are a line for each level, and why tests were skipped.
func TestPrintOutcomes(t *testing.T) {
	var out strings.Builder
	printOutcomes(&out, []outcome{
		{
			level:   unit,
			counts:  counts{4899, 1, 3},
			reasons: map[string]int{"needs root": 1, "no cluster": 2},
			remark:  "without the race detector",
		},
		{level: envtest, failed: errors.New("build etcd: no space")},
		{level: simulated, counts: counts{passed: 21}, flaky: []string{"a TestA"}},
		{level: e2e, notRun: "real nodes need Linux and root"},
	})
	const want = `
level       passed  failed skipped
unit          4899       1       3  without the race detector
             skipped 2: no cluster
             skipped 1: needs root
envtest    FAILED: build etcd: no space
simulated       21       0       0
             flaky: a TestA
e2e        not run: real nodes need Linux and root
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestOutcomeOfReport(t *testing.T) {
	r := newReport(&strings.Builder{}, false)
	if err := r.read(strings.NewReader(strings.TrimPrefix(events, "\n"))); err != nil {
		t.Fatal(err)
	}
	o := r.outcome(unit)
	if o.counts != (counts{2, 3, 1}) || len(o.reasons) != 1 || o.reasons["no test cluster: not built"] != 1 {
		t.Errorf("%+v", o)
	}
}

func TestRed(t *testing.T) {
	cases := map[string]struct {
		o                         outcome
		optional, whereIsDemanded bool
	}{
		"all passed":                    {outcome{counts: counts{passed: 1}}, false, false},
		"a test failed":                 {outcome{counts: counts{failed: 1}}, true, true},
		"the set-up failed":             {outcome{failed: errors.New("x")}, true, true},
		"the machine cannot run it":     {outcome{notRun: "x"}, false, true},
		"tests were skipped one by one": {outcome{counts: counts{skipped: 1}}, false, false},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if c.o.red(false) != c.optional || c.o.red(true) != c.whereIsDemanded {
				t.Errorf("red: %t, and %t where a cluster is required", c.o.red(false), c.o.red(true))
			}
		})
	}
}

package main

import (
	"strings"
	"testing"
)

//nolint:lll // as go test prints them
const events = `
{"Time":"2026-01-01T00:00:00Z","Action":"start","Package":"github.com/kruisekit/kruisekit/a"}
{"Time":"2026-01-01T00:00:00Z","Action":"run","Package":"github.com/kruisekit/kruisekit/a","Test":"TestA"}
{"Time":"2026-01-01T00:00:00Z","Action":"output","Package":"github.com/kruisekit/kruisekit/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Time":"2026-01-01T00:00:01Z","Action":"run","Package":"github.com/kruisekit/kruisekit/a","Test":"TestA/one"}
{"Time":"2026-01-01T00:00:01Z","Action":"output","Package":"github.com/kruisekit/kruisekit/a","Test":"TestA/one","Output":"    a_test.go:1: it is wrong\n"}
{"Time":"2026-01-01T00:00:01Z","Action":"fail","Package":"github.com/kruisekit/kruisekit/a","Test":"TestA/one","Elapsed":1}
{"Time":"2026-01-01T00:00:01Z","Action":"pass","Package":"github.com/kruisekit/kruisekit/a","Test":"TestA/two","Elapsed":0}
{"Time":"2026-01-01T00:00:01Z","Action":"fail","Package":"github.com/kruisekit/kruisekit/a","Test":"TestA","Elapsed":1}
{"Time":"2026-01-01T00:00:01Z","Action":"output","Package":"github.com/kruisekit/kruisekit/a","Test":"TestB","Output":"    a_test.go:2: all is well\n"}
{"Time":"2026-01-01T00:00:01Z","Action":"pass","Package":"github.com/kruisekit/kruisekit/a","Test":"TestB","Elapsed":0}
{"Time":"2026-01-01T00:00:01Z","Action":"output","Package":"github.com/kruisekit/kruisekit/a","Output":"FAIL\n"}
{"Time":"2026-01-01T00:00:02Z","Action":"fail","Package":"github.com/kruisekit/kruisekit/a","Elapsed":2}
{"Time":"2026-01-01T00:00:06Z","Action":"start","Package":"github.com/kruisekit/kruisekit/b"}
{"Time":"2026-01-01T00:00:06Z","Action":"output","Package":"github.com/kruisekit/kruisekit/b","Test":"TestC","Output":"    b_test.go:3: no test cluster: not built\n"}
{"Time":"2026-01-01T00:00:06Z","Action":"output","Package":"github.com/kruisekit/kruisekit/b","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Time":"2026-01-01T00:00:06Z","Action":"skip","Package":"github.com/kruisekit/kruisekit/b","Test":"TestC","Elapsed":0}
{"Time":"2026-01-01T00:00:06Z","Action":"output","Package":"github.com/kruisekit/kruisekit/b","Output":"ok  \tgithub.com/kruisekit/kruisekit/b\t(cached)\n"}
{"Time":"2026-01-01T00:00:06Z","Action":"pass","Package":"github.com/kruisekit/kruisekit/b","Elapsed":0.1}
{"ImportPath":"github.com/kruisekit/kruisekit/c [x.test]","Action":"build-output","Output":"c.go:1: syntax error\n"}
{"Time":"2026-01-01T00:00:07Z","Action":"start","Package":"github.com/kruisekit/kruisekit/c"}
{"Time":"2026-01-01T00:00:07Z","Action":"output","Package":"github.com/kruisekit/kruisekit/c","Output":"FAIL\tgithub.com/kruisekit/kruisekit/c [build failed]\n"}
{"Time":"2026-01-01T00:00:07Z","Action":"fail","Package":"github.com/kruisekit/kruisekit/c","Elapsed":0,"FailedBuild":"x"}
{"Time":"2026-01-01T00:00:07Z","Action":"start","Package":"github.com/kruisekit/kruisekit/d"}
{"Time":"2026-01-01T00:00:07Z","Action":"output","Package":"github.com/kruisekit/kruisekit/d","Test":"TestD","Output":"panic: boom\n"}
{"Time":"2026-01-01T00:00:08Z","Action":"fail","Package":"github.com/kruisekit/kruisekit/d","Elapsed":1}
{"Time":"2026-01-01T00:00:08Z","Action":"start","Package":"github.com/kruisekit/kruisekit/e"}
{"Time":"2026-01-01T00:00:08Z","Action":"output","Package":"github.com/kruisekit/kruisekit/e","Output":"?   \tgithub.com/kruisekit/kruisekit/e\t[no test files]\n"}
{"Time":"2026-01-01T00:00:08Z","Action":"skip","Package":"github.com/kruisekit/kruisekit/e","Elapsed":0}
`

const printed = `    a_test.go:1: it is wrong
FAIL    2.0s a
ok    cached b
c.go:1: syntax error
FAIL	github.com/kruisekit/kruisekit/c [build failed]
FAIL    0.0s c
panic: boom
FAIL    1.0s d

 seconds passed failed skipped  package
     2.0      2      1       0  a (longest: TestA/one, 1.0 s)
     1.0      0      1       0  d
     0.0      0      1       0  c
         1 packages below 1 second, 1 of all cached
skipped: b TestC: b_test.go:3: no test cluster: not built
level unit: 4 packages, 2 tests passed, 3 failed, 1 skipped; took 8 s, packages ran for 3 s, none ran for 5 s
`

// A reader finds what failed and why, what each package took, and what was skipped.
func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, false)
	if err := r.read(strings.NewReader(strings.TrimPrefix(events, "\n"))); err != nil {
		t.Fatal(err)
	}
	r.summary(unit)
	if got := out.String(); got != printed {
		t.Errorf("got:\n%s\nwant:\n%s", got, printed)
	}
}

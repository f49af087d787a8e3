package podprobemarker_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/podprobemarker"
)

const good = `{"metadata":{"name":"m"},"spec":{"selector":{"matchLabels":{"app":"web"}},"probes":[{"name":"a",
	"containerName":"main","podConditionType":"example.com/a","probe":{"exec":{"command":["true"]}}}]}}`

// What exactly is invalid is tested in package podprobe.
func TestValidate(t *testing.T) {
	with := func(text, instead string) string { return strings.Replace(good, text, instead, 1) }
	for name, c := range map[string]struct {
		why, now, stored string
		off              bool
		want             plaintest.Want
	}{
		"good": {why: "a valid marker", now: good},
		"nothing": {
			why: "all faults are reported at once", now: `{"spec":{}}`,
			want: plaintest.Want{Code: 400, Paths: "spec.selector spec.probes"},
		},
		"off": {
			why: "without a daemon nothing probes", now: good, off: true,
			want: plaintest.Want{Code: 403, Text: "feature gates PodProbeMarkerGate and KruiseDaemon must be on"},
		},
		"other probes": {why: "the probes can change", now: with(`"true"`, `"false"`), stored: good},
		"other selector": {
			why: "the selector cannot", now: with("web", "db"), stored: good,
			want: plaintest.Want{Code: 400, Paths: "spec.selector"},
		},
		"reserved": {
			why: "a condition of the kubelet is not written", now: with("example.com/a", "Ready"),
			want: plaintest.Want{Warnings: 1},
		},
		"too large": {
			why: "a period beyond 32 bits cannot be decoded", now: with(`"exec"`, `"periodSeconds":99999999999,"exec"`),
			want: plaintest.Want{Code: 400, Paths: "spec.probes.probe.periodSeconds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := podprobemarker.New(podprobemarker.Options{Off: c.off})
			if err != nil {
				t.Fatal(err)
			}
			r := plaintest.Request(plaintest.Kind("PodProbeMarker"), "v1alpha1", c.now, c.stored)
			plaintest.Answers(t, c.why, c.want, w[podprobemarker.Path](t.Context(), r))
		})
	}
}

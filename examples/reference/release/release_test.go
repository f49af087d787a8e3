package release

import (
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestOf(t *testing.T) {
	for linked, want := range map[string]string{
		"v0.1.0":  "kruise-manager/v0.1.0",
		"":        "kruise-manager/devel", // a test has no version
		"(devel)": "kruise-manager/devel",
	} {
		if got := Of("kruise-manager", linked).UserAgent(); got != want {
			t.Errorf("linked as %q, it is %q, want %q", linked, got, want)
		}
	}
}

func TestVersionOnRequest(t *testing.T) {
	for args, want := range map[string]bool{
		"--version": true, "-v=2 -version": true, "": false, "-v=2": false, "--feature-gates=version=true": false,
	} {
		if got := Asked(strings.Fields(args)); got != want {
			t.Errorf("%q asks for the version: %t", args, got)
		}
	}
	if got := Of("kruise-daemon", "v0.1.0").String(); !strings.HasPrefix(got, "kruise-daemon v0.1.0 go") {
		t.Errorf("the answer is %q", got)
	}
}

func TestMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 { // as two managers in one process
		if err := Of("kruise-manager", "v0.1.0").Register("kruise_manager_build_info", registry); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "kruise_manager_build_info" {
		t.Fatalf("%v is exported, %v", families, err)
	}
	labels := map[string]string{}
	for _, pair := range families[0].GetMetric()[0].GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	if labels["version"] != "v0.1.0" || labels["goversion"] != runtime.Version() ||
		families[0].GetMetric()[0].GetGauge().GetValue() != 1 {
		t.Errorf("%v is exported", families[0])
	}
}

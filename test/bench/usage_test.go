package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Samples are those of the metric, with their labels.
func TestSamples(t *testing.T) {
	text := `# HELP requests_total All.
requests_total{code="200",method="PATCH"} 3
requests_total{code="409",method="PATCH"} 1e+02
requests_total_created 7
requests_total 5
`
	got := samples([]byte(text), "requests_total")
	want := []sample{
		{map[string]string{"code": "200", "method": "PATCH"}, 3},
		{map[string]string{"code": "409", "method": "PATCH"}, 100},
		{map[string]string{}, 5},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Scenarios are chosen by name, in full unless asked otherwise.
func TestChoose(t *testing.T) {
	for which, want := range map[string]struct {
		n     int
		quick bool
	}{
		"full": {len(scenarios()), false}, "quick": {len(scenarios()), true}, "a,c": {2, false}, "quick,d": {1, true},
	} {
		chosen, quick, err := choose(which)
		if err != nil || len(chosen) != want.n || quick != want.quick {
			t.Errorf("%s: %d scenarios, quick %t, %v", which, len(chosen), quick, err)
		}
	}
	if _, _, err := choose("quick,x"); err == nil {
		t.Error("there is no scenario x")
	}
}

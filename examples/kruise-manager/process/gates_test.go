package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/gates"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
)

func TestRunning(t *testing.T) {
	cases := map[string]struct {
		gates  string
		chosen []string
		want   []string
	}{
		"all":                   {"", nil, []string{"*"}},
		"some":                  {"", []string{"cloneset"}, []string{"cloneset"}},
		"without a daemon":      {"KruiseDaemon=false", nil, []string{"*", "-containerrecreaterequest"}},
		"some without a daemon": {"KruiseDaemon=false", []string{"cloneset"}, []string{"cloneset", "-containerrecreaterequest"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := gates.Parse(c.gates)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, running(options.Options{Controllers: c.chosen, Gates: g})); diff != "" {
				t.Errorf("running controllers (-want +got):\n%s", diff)
			}
		})
	}
}

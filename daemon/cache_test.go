package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestManagerOptions(t *testing.T) {
	long := strings.Repeat("n", 64)
	cases := map[string]struct {
		why, node string
		o         Options
		want      map[string]string
	}{
		"all": {"each kind by what API servers can select by", "node-a", Options{}, map[string]string{
			"NodeImage":                "metadata.name=node-a",
			"NodePodProbe":             "metadata.name=node-a",
			"ContainerRecreateRequest": "crr.apps.kruise.io/active=true,crr.apps.kruise.io/node-name=node-a",
			"Pod":                      "spec.nodeName=node-a",
		}},
		"without pods and probes": {
			why:  "the gates are off",
			node: "node-a",
			o:    Options{WithoutPods: true, WithoutProbes: true},
			want: map[string]string{
				"NodeImage":                "metadata.name=node-a",
				"ContainerRecreateRequest": "crr.apps.kruise.io/active=true,crr.apps.kruise.io/node-name=node-a",
			},
		},
		"a long name": {
			why:  "which fits in no label: an API server would refuse to select by it",
			node: long,
			o:    Options{},
			want: map[string]string{
				"NodeImage": "metadata.name=" + long, "NodePodProbe": "metadata.name=" + long, "Pod": "spec.nodeName=" + long,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mo, err := ManagerOptions(c.node, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if !mo.Cache.ReaderFailOnMissingInformer {
				t.Error("a read in passing starts an informer")
			}
			live := ""
			for _, object := range mo.Client.Cache.DisableFor {
				live += fmt.Sprintf(" %T", object)
			}
			if want := " *v1.Secret"; live != want && (!c.o.WithoutPods || live != want+" *v1.Pod") {
				t.Errorf("read live: %s", live)
			}
			got := map[string]string{}
			for object, by := range mo.Cache.ByObject {
				kinds, _, err := mo.Scheme.ObjectKinds(object)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case by.Label != nil && by.Field == nil:
					got[kinds[0].Kind] = by.Label.String()
				case by.Field != nil && by.Label == nil:
					got[kinds[0].Kind] = by.Field.String()
				default:
					t.Errorf("%s is selected by %v and %v", kinds[0].Kind, by.Label, by.Field)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	if _, err := ManagerOptions("", Options{}); err == nil {
		t.Error("a daemon of no node is accepted")
	}
}

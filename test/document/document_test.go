package document

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		text string
		want [][]string
	}{
		"output and other programs are no commands": {
			"$ make demo\nkubectl get pods\n  a  $ kubectl get pods\n", nil,
		},
		"words are separated by spaces": {
			"$ kubectl get  pods\nNAME\n$ kubectl get nodes", [][]string{{"get", "pods"}, {"get", "nodes"}},
		},
		"quotes keep a word together, and go": {
			"$ kubectl get -o 'jsonpath={.a} {.b}'\n", [][]string{{"get", "-o", "jsonpath={.a} {.b}"}},
		},
		"a block in a list is indented": {"   $ kubectl get pods\n", [][]string{{"get", "pods"}}},
		"paths of the repository are relative to the tests": {
			"$ kubectl apply -k config/default", [][]string{{"apply", "-k", "../../config/default"}},
		},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parse(c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

package advancedcronjob

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// How the status of each kind reports the end of a child, whatever is stored in it.
func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		kind   int
		status string
		want   state
	}{
		"new Job":     {0, `{}`, active},
		"running Job": {0, `{active: 1, conditions: [{type: Suspended, status: "True"}]}`, active},
		"Job with conditions": {
			0, `{conditions: [{type: Complete, status: "False"}, {type: Failed, status: "Unknown"}]}`, active,
		},
		"complete Job": {
			0, `{conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`, succeeded,
		},
		"failed Job":           {0, `{conditions: [{type: Failed, status: "True"}]}`, failed},
		"malformed Job":        {0, `{conditions: [7, {type: 7}, null], startTime: 7}`, active},
		"no status":            {2, `null`, active},
		"failed BroadcastJob":  {2, `{conditions: [{type: Failed, status: "True"}]}`, failed},
		"pulling":              {1, `{desired: 3, succeeded: 1, startTime: "2030-01-01T00:00:00Z"}`, active},
		"pulled":               {1, `{desired: 3, succeeded: 3, completionTime: "2030-01-01T00:00:00Z"}`, succeeded},
		"pulled none of none":  {1, `{completionTime: "2030-01-01T00:00:00Z"}`, succeeded},
		"pulled some":          {1, `{desired: 3, succeeded: 2, completionTime: "2030-01-01T00:00:00Z"}`, failed},
		"pulled, odd":          {1, `{desired: x, succeeded: 2.0, completionTime: null}`, active},
		"pulled, as a decimal": {1, `{desired: 2, succeeded: 2.0, completionTime: "2030-01-01T00:00:00Z"}`, succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kinds()[c.kind].view(decode(t, `{metadata: {name: a}, status: `+c.status+`}`)); got.state != c.want {
				t.Errorf("got %q, want %q", got.state, c.want)
			}
		})
	}
}

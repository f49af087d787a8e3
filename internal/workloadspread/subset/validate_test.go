package subset_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

const plainSpread = `{"metadata":{"name":"spread","namespace":"shop"},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
"subsets":[{"name":"a","maxReplicas":3},{"name":"b"}]}}`

// workloadSpread is a plain WorkloadSpread whose spec is changed by a merge patch.
func workloadSpread(t *testing.T, patch string) *appsv1beta1.WorkloadSpread {
	t.Helper()
	ws := &appsv1beta1.WorkloadSpread{}
	if patch != "" {
		patch = `{"spec":` + patch + `}`
	}
	validationtest.Patched(t, plainSpread, patch, ws)
	return ws
}

// ruleCase is a spec, given as a patch of a plain one, and the faults that it has as "path: type".
type ruleCase struct {
	why, patch string
	want       []string
}

func TestValidate(t *testing.T) {
	three := func(a, b, c string) string {
		return `{"subsets":[{"name":"a","maxReplicas":` + a + `},{"name":"b","maxReplicas":` + b +
			`},{"name":"c","maxReplicas":` + c + `}]}`
	}
	strategy := func(n, seconds string) string {
		return `{"subsets":` + n + `,"scheduleStrategy":{"type":"Adaptive","adaptive":{"rescheduleCriticalSeconds":` +
			seconds + `}}}`
	}
	const two = `[{"name":"a"},{"name":"b"}]`
	const most = "spec.subsets[0].maxReplicas: Invalid value"
	for name, test := range map[string]ruleCase{
		"nothing but the required": {"the minimum is sound", ``, nil},
		"an empty target": {
			"all members are needed", `{"targetRef":{"apiVersion":"","kind":"","name":""}}`,
			[]string{
				"spec.targetRef.apiVersion: Required value", "spec.targetRef.kind: Required value",
				"spec.targetRef.name: Required value",
			},
		},
		"another group": {
			"kind and group belong together", `{"targetRef":{"apiVersion":"batch/v1"}}`,
			[]string{"spec.targetRef: Invalid value"},
		},
		"no version": {
			"it cannot be parsed", `{"targetRef":{"apiVersion":"a/b/c"}}`, []string{"spec.targetRef.apiVersion: Invalid value"},
		},
		"an unknown kind": {
			"pods of it are not found", `{"targetRef":{"apiVersion":"x.io/v1","kind":"Foo"}}`,
			[]string{"spec.targetRef: Invalid value"},
		},
		"a selector": {
			"it must be one", `{"targetFilter":{"selector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}}`,
			[]string{"spec.targetFilter: Invalid value"},
		},
		"names": {
			"they are the identity", `{"subsets":[{"name":""},{"name":"a"},{"name":"a"}]}`,
			[]string{"spec.subsets[0].name: Required value", "spec.subsets[2].name: Duplicate value"},
		},
		"a required selector": {
			"it must be one",
			`{"subsets":[{"name":"a","requiredNodeSelector":{"matchExpressions":[{"key":"z","operator":"Is"}]}}]}`,
			[]string{"spec.subsets[0].requiredNodeSelector: Invalid value"},
		},
		"preferred terms": {
			"weights are bounded",
			`{"subsets":[{"name":"a","preferredNodeSelector":[{"weight":0,"preference":{}},{"weight":1,"preference":{"matchExpressions":[{"key":"z","operator":"Is"}]}}]}]}`,
			[]string{
				"spec.subsets[0].preferredNodeSelector[0].weight: Invalid value",
				"spec.subsets[0].preferredNodeSelector[1].preference: Invalid value",
			},
		},
		"tolerations": {
			"those of the API server",
			`{"subsets":[{"name":"a","tolerations":[{"key":"-"},{"operator":"Equal"},{"key":"a","operator":"Is"},{"key":"a","effect":"No"},{"key":"a","operator":"Exists","value":"b"},{"key":"a","tolerationSeconds":3}]}]}`,
			[]string{
				"spec.subsets[0].tolerations[0].key: Invalid value", "spec.subsets[0].tolerations[1].operator: Invalid value",
				"spec.subsets[0].tolerations[2].operator: Unsupported value",
				"spec.subsets[0].tolerations[3].effect: Unsupported value",
				"spec.subsets[0].tolerations[4].operator: Invalid value", "spec.subsets[0].tolerations[5].effect: Invalid value",
			},
		},
		"values of tolerations": {
			"as the API server checks them in pods",
			`{"subsets":[{"name":"a","tolerations":[{"key":"a","value":"-"},{"key":"a","operator":"Equal","value":"b c"},{"key":"a","operator":"Gt","value":"x"},{"key":"a","operator":"Lt","value":"07"},
			{"key":"a","operator":"Lt","value":"9223372036854775808"},{"key":"a","operator":"Gt"},{"key":"a","operator":"Lt","value":"-5"},{"key":"a","value":"b"},{"key":"a","operator":"Equal"}]}]}`,
			[]string{
				"spec.subsets[0].tolerations[0].operator: Invalid value", "spec.subsets[0].tolerations[1].operator: Invalid value",
				"spec.subsets[0].tolerations[2].value: Invalid value",
				"spec.subsets[0].tolerations[3].value: Invalid value", "spec.subsets[0].tolerations[4].value: Invalid value",
				"spec.subsets[0].tolerations[5].value: Invalid value",
			},
		},
		"required fields of nodes": {
			"nodes are selected by the name alone",
			`{"subsets":[{"name":"a","requiredNodeSelector":{"matchFields":[{"key":"metadata.uid","operator":"In","values":["a"]},{"key":"metadata.name","operator":"In","values":["A b"]},{"key":"metadata.name","operator":"NotIn","values":["a"]}]}}]}`,
			[]string{
				"spec.subsets[0].requiredNodeSelector.matchFields[0].key: Invalid value",
				"spec.subsets[0].requiredNodeSelector.matchFields[1].values[0]: Invalid value",
			},
		},
		"a patch": {
			"it must be an object", `{"subsets":[{"name":"a","patch":7}]}`, []string{"spec.subsets[0].patch: Invalid value"},
		},
		"mixed types": {
			"they cannot be added", three(`3`, `"30%"`, `null`), []string{"spec.subsets[1].maxReplicas: Invalid value"},
		},
		"a negative number": {"there is none", three(`-1`, `1`, `1`), []string{most}},
		"a percentage":      {"it must be one", three(`"x"`, `null`, `null`), []string{most}},
		"less than all":     {"pods would have no place", three(`"40%"`, `"20%"`, `"20%"`), []string{most}},
		"less with a rest":  {"the last takes the rest", three(`"40%"`, `"20%"`, `null`), nil},
		"more than all": {
			"the sum is bounded", three(`"40%"`, `"70%"`, `null`), []string{"spec.subsets[1].maxReplicas: Invalid value"},
		},
		"a StatefulSet": {
			"ordinals need numbers",
			`{"targetRef":{"kind":"StatefulSet"},"subsets":[{"name":"a","maxReplicas":"50%"},{"name":"b"}]}`,
			[]string{most},
		},
		"a type": {
			"it is unknown", `{"scheduleStrategy":{"type":"Lazy"}}`, []string{"spec.scheduleStrategy.type: Unsupported value"},
		},
		"adaptive without": {
			"it would be ignored", `{"scheduleStrategy":{"adaptive":{}}}`, []string{"spec.scheduleStrategy.type: Invalid value"},
		},
		"adaptive and a limit": {
			"the last takes what others cannot",
			`{"subsets":[{"name":"a"},{"name":"b","maxReplicas":3}],"scheduleStrategy":{"type":"Adaptive","adaptive":{}}}`,
			[]string{"spec.scheduleStrategy.adaptive: Invalid value"},
		},
		"negative seconds": {
			"there are none", strategy(two, `-1`),
			[]string{"spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds: Invalid value"},
		},
		"too many seconds": {
			"the hold is five minutes", strategy(two, `296`),
			[]string{"spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds: Invalid value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, validationtest.Places(subset.Validate(workloadSpread(t, test.patch), schema.GroupKind{
				Group: "example.com", Kind: "Game",
			}))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

func TestWorkloadSpreadUpdate(t *testing.T) {
	was := workloadSpread(t, "")
	for patch, allowed := range map[string]bool{
		``: true, `{"targetRef":{"apiVersion":"apps/v1beta9"}}`: true, `{"targetRef":{"apiVersion":"batch/v1"}}`: false,
		`{"targetRef":{"kind":"CloneSet"}}`: false,
		`{"targetRef":{"name":"other"}}`:    false, `{"subsets":[{"name":"z"}]}`: true,
	} {
		if faults := subset.ValidateUpdate(workloadSpread(t, patch), was); (len(faults) == 0) != allowed {
			t.Errorf("%s: %v", patch, faults)
		}
	}
}

func TestWorkloadSpreadConflict(t *testing.T) {
	is := workloadSpread(t, "")
	for name, c := range map[string]struct {
		patch    string
		change   func(*appsv1beta1.WorkloadSpread)
		conflict bool
	}{
		"the same target":                    {conflict: true},
		"the same target in another version": {patch: `{"targetRef":{"apiVersion":"apps/v2"}}`, conflict: true},
		"one that is being deleted": {
			change: func(ws *appsv1beta1.WorkloadSpread) { ws.DeletionTimestamp = &metav1.Time{} },
		},
		"itself": {change: func(ws *appsv1beta1.WorkloadSpread) { ws.Name = "spread" }},
	} {
		other := workloadSpread(t, c.patch)
		other.Name = "other"
		if c.change != nil {
			c.change(other)
		}
		if fault := subset.Conflict(is,
			[]*appsv1beta1.WorkloadSpread{other}); (fault != nil) != c.conflict {
			t.Errorf("%s: %v", name, fault)
		}
	}
}

// FuzzWorkloadSpread: whatever can be decoded gets an answer, twice the same, and is not changed.
func FuzzWorkloadSpread(f *testing.F) {
	f.Add([]byte(plainSpread))
	f.Add(
		[]byte(`{"spec":{"subsets":[{"maxReplicas":"1e9%"},{"requiredNodeSelector":{},"patch":null}],"scheduleStrategy":{"adaptive":{"rescheduleCriticalSeconds":-5}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ws := &appsv1beta1.WorkloadSpread{}
		if json.Unmarshal(data, ws) != nil {
			return
		}
		before := ws.DeepCopy()
		first := subset.Validate(ws).ToAggregate()
		_ = subset.ValidateUpdate(ws, before)
		_ = subset.Conflict(ws, []*appsv1beta1.WorkloadSpread{before})
		if again := subset.Validate(before).ToAggregate(); (first == nil) != (again == nil) ||
			first != nil && first.Error() != again.Error() {
			t.Errorf("%v, then %v", first, again)
		}
	})
}

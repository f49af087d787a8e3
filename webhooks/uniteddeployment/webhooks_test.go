package uniteddeployment_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/webhooks/uniteddeployment"
)

// members are the templates of the four kinds.
func members() []string {
	return []string{"cloneSetTemplate", "advancedStatefulSetTemplate", "statefulSetTemplate", "deploymentTemplate"}
}

// object is a UnitedDeployment of two subsets whose spec is changed by a merge patch.
func object(t *testing.T, member, patch string) string {
	t.Helper()
	plain := `{"replicas":4,"selector":{"matchLabels":{"app":"web"}},"topology":{"subsets":[{"name":"a"},{"name":"b"}]},
		"template":{"` + member + `":{"metadata":{"labels":{"app":"web"}},"spec":{"selector":{"matchLabels":{"app":"web"}},
			"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}}}`
	return `{"metadata":{"name":"web","namespace":"shop"},"spec":` + plaintest.Patched(t, plain, patch) + `}`
}

// gently rejects a strategy of workloads.
func gently(o client.Object) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	for _, strategy := range []string{"strategy", "updateStrategy"} {
		if kind, _, _ := unstructured.NestedString(raw, "spec", strategy, "type"); kind == "Gently" {
			at := field.NewPath("spec", strategy, "type")
			return apierrors.NewInvalid(schema.GroupKind{}, "x",
				field.ErrorList{field.NotSupported(at, kind, []string{"Recreate"})})
		}
	}
	return err
}

// review sends a request, and returns the number of questions that the API server is asked.
func review(t *testing.T, o kinds.Options, path, version, now, stored string) (plaintest.Answer, int) {
	t.Helper()
	server := &plaintest.Server{Rejects: gently}
	w, err := uniteddeployment.New(server.Client(), o)
	if err != nil {
		t.Fatal(err)
	}
	answer := w[path](t.Context(), plaintest.Request(plaintest.Kind("UnitedDeployment"), version, now, stored))
	return answer, len(server.Asked)
}

// A statefulSetTemplate alone gets the defaults of pod templates.
func TestMutate(t *testing.T) {
	for _, member := range members() {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			now := object(t, member, `{"replicas":null,"topology":{"subsets":[{"name":"a","maxReplicas":2},{"name":"b"}]}}`)
			answer, calls := review(t, kinds.Options{}, uniteddeployment.MutatePath, version, now, "")
			patch := string(answer.Patch)
			for _, want := range []string{
				`/spec/replicas","value":1`, `/spec/revisionHistoryLimit","value":10`,
				`"type":"Manual"`,
			} {
				if !strings.Contains(patch, want) || !answer.Allowed {
					t.Errorf("%s %s: no %s in %s", version, member, want, patch)
				}
			}
			defaulted := strings.Contains(patch, `/spec/template/statefulSetTemplate/spec/template/spec/dnsPolicy"`)
			if defaulted != (member == "statefulSetTemplate") || calls > 0 != defaulted {
				t.Errorf("%s %s: %d calls, patch %s", version, member, calls, patch)
			}
		}
	}
}

// Faults have their paths, those of the API server too. The rules have tests of their own.
func TestValidate(t *testing.T) {
	const set, deployed, cloned = "statefulSetTemplate", "deploymentTemplate", "cloneSetTemplate"
	strategy := func(member, name string) string {
		return `{"template":{"` + member + `":{"spec":{"` + name + `":{"type":"Gently"}}}}}`
	}
	cases := map[string]struct {
		why, member, now, before string
		code                     int32
		paths                    string
		calls                    int
	}{
		"a CloneSet":            {"the pod template is asked about", cloned, "", "", 0, "", 1},
		"a StatefulSet":         {"the pod template and the set are asked about", set, "", "", 0, "", 2},
		"a Deployment":          {"as a StatefulSet", deployed, "", "", 0, "", 2},
		"an unchanged template": {"it was reviewed before", deployed, `{"replicas":5}`, `{}`, 0, "", 0},
		"an unknown strategy": {
			why: "the API server finds it", member: deployed, now: strategy(deployed, "strategy"), code: 422,
			paths: "spec.template.deploymentTemplate.spec.strategy.type", calls: 2,
		},
		"an unknown update strategy": {
			why: "as for a Deployment", member: set, now: strategy(set, "updateStrategy"), code: 422,
			paths: "spec.template.statefulSetTemplate.spec.updateStrategy.type", calls: 2,
		},
		"every fault": {
			why: "all faults are reported at once", member: cloned,
			now: `{"replicas":-1,"topology":{"subsets":[{"name":"A"},{"name":"b"},{"name":"b"}]}}`, code: 422,
			paths: "spec.replicas spec.topology.subsets[0].name spec.topology.subsets[2].name", calls: 1,
		},
		"another selector": {
			why: "it cannot change", member: cloned,
			now: `{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`, before: `{}`, code: 422,
			paths: "spec.selector",
		},
		"two templates": {
			why: "one is needed", member: cloned,
			now: `{"template":{"deploymentTemplate":{"metadata":{"labels":{"app":"web"}},` +
				`"spec":{"template":{"metadata":{"labels":{"app":"web"}}}}}}}`,
			code: 422, paths: "spec.template", calls: -1,
		},
		"no template": {"one is needed", cloned, `{"template":null}`, "", 422, "spec.template", 0},
		"a patch of a list": {
			why: "it is no patch", member: cloned, now: `{"topology":{"subsets":[{"name":"a","patch":["x"]}]}}`, code: 422,
			paths: "spec.topology.subsets[0].patch", calls: 1,
		},
	}
	for name, c := range cases {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				stored := ""
				if c.before != "" {
					stored = object(t, c.member, c.before)
				}
				now := object(t, c.member, c.now)
				answer, calls := review(t, kinds.Options{}, uniteddeployment.ValidatePath, version, now, stored)
				plaintest.Answers(t, c.why, plaintest.Want{Code: c.code, Paths: c.paths}, answer)
				if c.calls >= 0 && calls != c.calls {
					t.Errorf("%s: %d calls", c.why, calls)
				}
			})
		}
	}
}

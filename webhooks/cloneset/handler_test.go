package cloneset_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// TestPathsAreThoseOfTheVersion puts the same faults into both versions.
func TestPathsAreThoseOfTheVersion(t *testing.T) {
	cases := map[string]struct {
		why, version, patch string
		want                []string
	}{
		"v1alpha1 budgets": {
			why: "they lie beside the type", version: "v1alpha1",
			patch: `{"updateStrategy":{"partition":-1,"maxUnavailable":"x","maxSurge":"y"}}`, want: []string{
				"spec.updateStrategy.partition: FieldValueInvalid", "spec.updateStrategy.maxUnavailable: FieldValueInvalid",
				"spec.updateStrategy.maxSurge: FieldValueInvalid",
			},
		},
		"v1beta1 budgets": {
			why: "they have a block of their own", version: "v1beta1",
			patch: rolling(`{"partition":-1,"maxUnavailable":"x","maxSurge":"y"}`), want: []string{
				"spec.updateStrategy.rollingUpdate.partition: FieldValueInvalid",
				"spec.updateStrategy.rollingUpdate.maxUnavailable: FieldValueInvalid",
				"spec.updateStrategy.rollingUpdate.maxSurge: FieldValueInvalid",
			},
		},
		"v1alpha1 type": {
			why: "conversion would take it for ReCreate", version: "v1alpha1", patch: `{"updateStrategy":{"type":"Gently"}}`,
			want: []string{"spec.updateStrategy.type: FieldValueNotSupported"},
		},
		"v1alpha1 OnDelete": {
			why: "clients of this version count on the refusal", version: "v1alpha1",
			patch: `{"updateStrategy":{"type":"OnDelete"}}`, want: []string{"spec.updateStrategy.type: FieldValueNotSupported"},
		},
		"v1beta1 OnDelete": {"it is for this version", "v1beta1", `{"updateStrategy":{"type":"OnDelete"}}`, nil},
		"v1alpha1 in place": {
			why: "it has no surge in any version", version: "v1alpha1",
			patch: `{"updateStrategy":{"type":"InPlaceOnly","maxSurge":1}}`,
			want:  []string{"spec.updateStrategy.maxSurge: FieldValueInvalid"},
		},
		"v1alpha1 priority": {
			why: "terms are below the strategy", version: "v1alpha1",
			patch: `{"updateStrategy":{"priorityStrategy":{"orderPriority":[{"orderedKey":""}]}}}`,
			want:  []string{"spec.updateStrategy.priorityStrategy.orderPriority[0].orderedKey: FieldValueRequired"},
		},
		"v1alpha1 pods": {
			why: "a new set has none", version: "v1alpha1", patch: `{"scaleStrategy":{"podsToDelete":["x"]}}`,
			want: []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"},
		},
		"v1beta1 pods": {"they were always let pass", "v1beta1", `{"scaleStrategy":{"podsToDelete":["x"]}}`, nil},
		"v1alpha1 deadline": {
			why: "it must come after readiness", version: "v1alpha1", patch: `{"progressDeadlineSeconds":1,"minReadySeconds":1}`,
			want: []string{"spec.progressDeadlineSeconds: FieldValueInvalid"},
		},
		"v1beta1 deadline": {
			why: "here too", version: "v1beta1", patch: `{"progressDeadlineSeconds":1,"minReadySeconds":1}`,
			want: []string{"spec.progressDeadlineSeconds: FieldValueInvalid"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer, _ := review(t, nil, cloneset.ValidatePath, [3]string{c.version, "", c.patch})
			want := plaintest.Want{Paths: strings.Join(plaintest.Paths(answer), " ")}
			if c.want != nil {
				want.Code = http.StatusUnprocessableEntity
			}
			plaintest.Answers(t, c.why, want, answer)
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	many := `["mine"`
	for i := range 17 {
		many += fmt.Sprintf(`,"pod-%d"`, i)
	}
	many += `]`
	cases := map[string]struct {
		why, version, stored, now string
		want                      []string
		warnings, calls           int
	}{
		"an old type that was there": {
			why: "as above", version: "v1alpha1", stored: `{"updateStrategy":{"type":"Gently"}}`,
			now: `{"replicas":2,"updateStrategy":{"type":"Gently"}}`, warnings: 1,
		},
		"OnDelete that was there": {
			why: "it came from v1beta1, and something else changes", version: "v1alpha1",
			stored: `{"updateStrategy":{"type":"OnDelete"}}`, now: `{"replicas":2,"updateStrategy":{"type":"OnDelete"}}`,
			warnings: 1,
		},
		"OnDelete from now on": {
			why: "as in a new set", version: "v1alpha1", stored: `{}`, now: `{"updateStrategy":{"type":"OnDelete"}}`,
			want: []string{"spec.updateStrategy.type: FieldValueNotSupported"},
		},
		"no OnDelete from now on": {
			why: "that is a way out", version: "v1alpha1", stored: `{"updateStrategy":{"type":"OnDelete"}}`,
			now: `{"updateStrategy":{"type":"ReCreate"}}`,
		},
		"a pod of the set": {
			why: "it is read", version: "v1beta1", stored: `{}`, now: `{"scaleStrategy":{"podsToDelete":["mine"]}}`, calls: 1,
		},
		"a pod of nobody": {
			why: "in both versions", version: "v1beta1", stored: `{}`, now: `{"scaleStrategy":{"podsToDelete":["nobody"]}}`,
			want: []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}, calls: 1,
		},
		"a pod of nobody, before": {
			why: "in both versions", version: "v1alpha1", stored: `{}`, now: `{"scaleStrategy":{"podsToDelete":["nobody"]}}`,
			want: []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}, calls: 1,
		},
		"a pod that has gone": {
			why: "a controller tidies up later", version: "v1alpha1",
			stored: `{"scaleStrategy":{"podsToDelete":["gone","too"]}}`, now: `{"scaleStrategy":{"podsToDelete":["gone"]}}`,
		},
		"no name": {
			why: "no pod can have it", version: "v1beta1", stored: `{}`, now: `{"scaleStrategy":{"podsToDelete":["../x"]}}`,
			want: []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"},
		},
		"many pods": {
			why: "one call is enough", version: "v1beta1", stored: `{}`, now: `{"scaleStrategy":{"podsToDelete":` + many + `}}`,
			want: []string{"spec.scaleStrategy.podsToDelete: FieldValueInvalid"}, calls: 1,
		},
		"in place in v1alpha1": {
			why: "only images change", version: "v1alpha1", stored: `{"updateStrategy":{"type":"InPlaceOnly"}}`,
			now:  `{"updateStrategy":{"type":"InPlaceOnly"},"template":{"spec":{"priority":1}}}`,
			want: []string{"spec: FieldValueForbidden"}, calls: 1,
		},
		"selector": {
			why: "pods would be lost", version: "v1alpha1",
			stored: `{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`, now: `{}`,
			want: []string{"spec: FieldValueForbidden"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer, made := review(t, nil, cloneset.ValidatePath, [3]string{c.version, c.stored, c.now})
			if diff := cmp.Diff(c.want, plaintest.Causes(answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", c.why, diff, answer.Result)
			}
			if diff := cmp.Diff([]int{c.warnings, c.calls}, []int{len(answer.Warnings), made}); diff != "" {
				t.Errorf("%s: warnings and calls (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// v1alpha1 has some fields as annotations, which no schema validates.
func TestOldAnnotations(t *testing.T) {
	const key = "apps.kruise.io/image-predownload-parallelism"
	r := request(t, [3]string{"v1alpha1", "", ""})
	r.Object.Raw = []byte(plaintest.Patched(t, string(r.Object.Raw), `{"metadata":{"annotations":{"`+key+`":"50%"}}}`))
	w, err := cloneset.New(plainServer(new(int), nil), kinds.Options{})
	if err != nil {
		t.Fatal(err)
	}
	answer := w[cloneset.ValidatePath](t.Context(), r)
	want := []string{`metadata.annotations[` + key + `]: Invalid value: "50%": must be a number, and not negative`}
	if diff := cmp.Diff(want, answer.Warnings); diff != "" || !answer.Allowed {
		t.Errorf("allowed %v (-want +got):\n%s", answer.Allowed, diff)
	}
}

// Pods that cannot be read are no fault of the set.
func TestPodsUnread(t *testing.T) {
	for want, err := range map[int32]error{504: context.DeadlineExceeded, 500: errors.New("boom")} {
		for _, pods := range []string{`["mine"]`, `["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]`} {
			answer, _ := review(t, err, cloneset.ValidatePath,
				[3]string{"v1beta1", `{}`, `{"scaleStrategy":{"podsToDelete":` + pods + `}}`})
			plaintest.Answers(t, pods, plaintest.Want{Code: want}, answer)
		}
	}
}

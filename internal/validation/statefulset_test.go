package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

const plainStatefulSet = `{"metadata":{"name":"web","namespace":"shop"},"spec":{"selector":{"matchLabels":{"app":"a"}},"serviceName":"web",
"template":{"metadata":{"labels":{"app":"a"}},"spec":{"readinessGates":[{"conditionType":"InPlaceUpdateReady"}],
  "containers":[{"name":"main","image":"a:1"}]}},
"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}`

// statefulSet is a plain StatefulSet whose spec is changed by a merge patch.
func statefulSet(t *testing.T, patch string) *appsv1beta1.StatefulSet {
	t.Helper()
	set := &appsv1beta1.StatefulSet{}
	if patch != "" {
		patch = `{"spec":` + patch + `}`
	}
	validationtest.Patched(t, plainStatefulSet, patch, set)
	return set
}

// parallel wraps a patch of the block of rolling updates in a set whose pods do not wait for each other.
func parallel(patch string) string {
	return `{"podManagementPolicy":"Parallel","updateStrategy":{"rollingUpdate":` + patch + `}}`
}

func TestStatefulSet(t *testing.T) {
	const at = "spec.updateStrategy.rollingUpdate."
	for name, test := range map[string]ruleCase{
		"nothing but the required": {"the defaults are sound", ``, nil},
		"negative numbers": {
			"no such numbers exist", `{"replicas":-1,"revisionHistoryLimit":-1,"ordinals":{"start":-1}}`,
			[]string{
				"spec.replicas: Invalid value", "spec.revisionHistoryLimit: Invalid value", "spec.ordinals.start: Invalid value",
			},
		},
		"empty selector": {
			"it would select every pod", `{"selector":{"matchLabels":null}}`, []string{"spec.selector: Invalid value"},
		},
		"other labels": {
			"the set would not find its pods", `{"selector":{"matchLabels":{"app":"b"}}}`,
			[]string{"spec.template.metadata.labels: Invalid value"},
		},
		"deadline": {
			"a set replaces each pod that ends", `{"template":{"spec":{"activeDeadlineSeconds":5}}}`,
			[]string{"spec.template.spec.activeDeadlineSeconds: Forbidden"},
		},
		"reserved ordinals": {
			"each item is judged alone", `{"reserveOrdinals":[1,"2-5","0003-005","5-2","a-b","3",-1]}`,
			[]string{
				"spec.reserveOrdinals[3]: Invalid value", "spec.reserveOrdinals[4]: Invalid value",
				"spec.reserveOrdinals[5]: Invalid value", "spec.reserveOrdinals[6]: Invalid value",
			},
		},
		"unknown retention": {
			"the values are unknown", `{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"delete","whenScaled":"Keep"}}`,
			[]string{
				"spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value",
				"spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value",
			},
		},
		"claim updates": {
			"the value is unknown", `{"volumeClaimUpdateStrategy":{"type":"Always"}}`,
			[]string{"spec.volumeClaimUpdateStrategy.type: Unsupported value"},
		},
		"policy of pods": {
			"the value is unknown", `{"podManagementPolicy":"Ordered"}`, []string{"spec.podManagementPolicy: Unsupported value"},
		},

		"ordered, two": {
			"a pod waits for those before it",
			`{"scaleStrategy":{"maxUnavailable":2},"updateStrategy":{"rollingUpdate":{"maxUnavailable":"50%"}}}`,
			[]string{"spec.scaleStrategy.maxUnavailable: Invalid value", at + "maxUnavailable: Invalid value"},
		},
		"parallel, two": {
			"pods do not wait",
			`{"podManagementPolicy":"Parallel","scaleStrategy":{"maxUnavailable":2},"updateStrategy":{"rollingUpdate":{"maxUnavailable":"150%"}}}`,
			nil,
		},
		"none": {
			"no pod could change", parallel(`{"maxUnavailable":0}`), []string{at + "maxUnavailable: Invalid value"},
		},
		"negative partition": {
			"there is no such number", parallel(`{"partition":-1}`), []string{at + "partition: Invalid value"},
		},
		"long minReadySeconds": {
			"300 is the most", parallel(`{"minReadySeconds":301}`), []string{at + "minReadySeconds: Invalid value"},
		},
		"negative grace": {
			"there is no such time", parallel(`{"inPlaceUpdateStrategy":{"gracePeriodSeconds":-1}}`),
			[]string{at + "inPlaceUpdateStrategy.gracePeriodSeconds: Invalid value"},
		},
		"unknown policy": {
			"the value is unknown", parallel(`{"podUpdatePolicy":"Gently"}`),
			[]string{at + "podUpdatePolicy: Unsupported value"},
		},
		"in place without gate": {
			"pods could not leave traffic",
			`{"template":{"spec":{"readinessGates":null}},"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible"}}}`,
			[]string{"spec.template.spec.readinessGates: Invalid value"},
		},
		"OnDelete with budget": {
			"the block has no effect", `{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"paused":true}}}`,
			[]string{"spec.updateStrategy.rollingUpdate: Invalid value"},
		},
		"unknown type": {
			"the value is unknown", `{"updateStrategy":{"type":"Recreate"}}`,
			[]string{"spec.updateStrategy.type: Unsupported value"},
		},
		"unordered": {
			"pods do not wait", parallel(`{"unorderedUpdate":{"priorityStrategy":{"orderPriority":[{"orderedKey":"a"}]}}}`), nil,
		},
		"unordered, in order": {
			"the two exclude each other", `{"updateStrategy":{"rollingUpdate":{"unorderedUpdate":{}}}}`,
			[]string{at + "unorderedUpdate: Invalid value"},
		},
		"both priorities": {
			"one order is possible",
			parallel(`{"unorderedUpdate":{"priorityStrategy":{"orderPriority":[{"orderedKey":""}],"weightPriority":[{"weight":101,"matchSelector":{}}]}}}`),
			[]string{
				at + "unorderedUpdate.priorityStrategy: Required value",
				at + "unorderedUpdate.priorityStrategy.weightPriority[0].weight: Required value",
				at + "unorderedUpdate.priorityStrategy.weightPriority[0].matchSelector: Required value",
				at + "unorderedUpdate.priorityStrategy.orderPriority[0].orderedKey: Required value",
			},
		},
		"OnDelete in the block": {
			"it needs no gate", `{"template":{"spec":{"readinessGates":null}},"updateStrategy":{"type":"OnDelete"}}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, defaults := range []bool{false, true} {
				set := statefulSet(t, test.patch)
				if defaults {
					set.Default()
				}
				if diff := cmp.Diff(test.want, validationtest.Places(validation.StatefulSet(set))); diff != "" {
					t.Errorf("%s; with defaults: %t (-want +got):\n%s", test.why, defaults, diff)
				}
			}
		})
	}
	long := statefulSet(t, "")
	long.Name = "web.db"
	faults := validationtest.Places(validation.StatefulSet(long))
	if diff := cmp.Diff([]string{"metadata.name: Invalid value"}, faults); diff != "" {
		t.Errorf("the name becomes a host name (-want +got):\n%s", diff)
	}
}

func TestStatefulSetUpdate(t *testing.T) {
	forbidden := []string{"spec: Forbidden"}
	for name, test := range map[string]struct {
		why, stored, patch string
		want               []string
	}{
		"nothing": {"nothing changes", ``, ``, nil},
		"all the rest": {
			why: "they can change", stored: ``,
			patch: `{"replicas":3,"ordinals":{"start":2},"reserveOrdinals":[1],"revisionHistoryLimit":3,"lifecycle":{},"scaleStrategy":{},"volumeClaimTemplates":null,"volumeClaimUpdateStrategy":{"type":"OnDelete"},"template":{"metadata":{"labels":{"b":"c"}}},"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}`,
		},
		"selector": {"pods are found by it", ``, `{"selector":{"matchLabels":{"app":"b"}}}`, forbidden},
		"service":  {"pods are named by it", ``, `{"serviceName":"other"}`, forbidden},
		"policy":   {"the order is fixed", ``, `{"podManagementPolicy":"Parallel"}`, forbidden},
		"default":  {"an empty policy is OrderedReady", ``, `{"podManagementPolicy":"OrderedReady"}`, nil},
		"image": {
			why:    "it changes in place",
			stored: parallel(`{"podUpdatePolicy":"InPlaceOnly"}`),
			patch:  `{"template":{"spec":{"containers":[{"name":"main","image":"a:2"}]}}}`,
		},
		"pull policy": {
			why:    "no running pod can change it",
			stored: parallel(`{"podUpdatePolicy":"InPlaceOnly"}`),
			patch:  `{"template":{"spec":{"containers":[{"name":"main","image":"a:1","imagePullPolicy":"Never"}]}}}`,
			want:   forbidden,
		},
		"recreate": {
			why:    "new pods can have any spec",
			stored: ``,
			patch:  `{"template":{"spec":{"containers":[{"name":"main","image":"a:1","command":["x"]}]}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored, set := statefulSet(t, test.stored), statefulSet(t, test.stored)
			if test.patch != "" {
				data := `{"spec":` + test.patch + `}`
				validationtest.Patched(t, validationtest.Encode(t, set), data, set)
			}
			if diff := cmp.Diff(test.want, validationtest.Places(validation.StatefulSetUpdate(set, stored))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

func TestStatefulSetExpansion(t *testing.T) {
	const expands = `"volumeClaimUpdateStrategy":{"type":"OnPodRollingUpdate"}`
	claims := func(templates string) string { return `{` + expands + `,"volumeClaimTemplates":[` + templates + `]}` }
	claim := func(name, storage, more string) string {
		return `{"metadata":{"name":"` + name +
			`"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"` + storage + `"}}` + more + `}}`
	}
	for name, test := range map[string]struct {
		why, patch string
		want       []string
		resized    []string
	}{
		"new claims only": {"no stored claim changes", `{"volumeClaimTemplates":null}`, nil, nil},
		"the same":        {"nothing changes", claims(claim("data", "1024Mi", "")), nil, nil},
		"larger": {
			why:     "the class must expand",
			patch:   claims(claim("data", "2Gi", "")),
			resized: []string{"spec.volumeClaimTemplates[data]"},
		},
		"another": {
			why:   "pods would lack it",
			patch: claims(claim("data", "1Gi", "") + "," + claim("log", "1Gi", "")),
			want:  []string{"spec.volumeClaimTemplates: Forbidden"},
		},
		"renamed": {
			why:   "pods would lack it",
			patch: claims(claim("log", "1Gi", "")),
			want:  []string{"spec.volumeClaimTemplates[log].name: Forbidden"},
		},
		"access modes": {
			why:   "no claim changes them",
			patch: claims(`{"metadata":{"name":"data"},"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`),
			want:  []string{"spec.volumeClaimTemplates[data]: Forbidden"},
		},
		"a data source": {
			why: "new claims have it", patch: claims(claim("data", "1Gi", `,"volumeName":"v","volumeMode":"Block"`)),
		},
		"without a request": {
			why:     "it is a change of size",
			patch:   claims(`{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"]}}`),
			resized: []string{"spec.volumeClaimTemplates[data]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			resizes, faults := validation.StatefulSetExpansion(statefulSet(t, test.patch), statefulSet(t, ""))
			var resized []string
			for i := range resizes {
				resized = append(resized, validation.ClaimTemplates().Key(resizes[i].Name).String())
			}
			got := [][]string{validationtest.Places(faults), resized}
			if diff := cmp.Diff([][]string{test.want, test.resized}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

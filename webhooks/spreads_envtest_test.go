//go:build envtest

package webhooks_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

const ofSet = `{"metadata":{"labels":{"app":"web"}},"spec":{"selector":{"matchLabels":{"app":"web"}},
	"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`

func unitedDeployments() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "UnitedDeployment", Bad: `{"revisionHistoryLimit":-1}`, Code: 422, At: []string{"spec.revisionHistoryLimit"},
		Spec: as(`{"replicas":4,"selector":{"matchLabels":{"app":"web"}},"topology":{"subsets":[{"name":"a"},{"name":"b"}]},
			"template":{"cloneSetTemplate":` + ofSet + `}}`),
		Recorded: []string{"1-created"}, Number: "replicas", Kept: `{"topology":{"scheduleStrategy":{"type":"Adaptive"},
			"subsets":
			[{"name":"a","maxReplicas":"50%","patch":{"metadata":{"labels":{"x":"y"}}}},{"name":"b"}]},
			"template":{"cloneSetTemplate":
			{"spec":{"scaleStrategy":{"maxUnavailable":1},"updateStrategy":{"type":"RollingUpdate",
			"rollingUpdate":{"maxSurge":2}}}}}}`,
	}, own: testMembers, policy: reviewUnitedDeployments}
}

// member replaces the template of CloneSets by another one, in a patch.
func member(name, patch string) string {
	of := `"template":{"cloneSetTemplate":null,"` + name + `":` + ofSet + `}}`
	if patch == "" {
		return "{" + of
	}
	return strings.TrimSuffix(patch, "}") + "," + of
}

// testMembers has the API server find what is wrong in the templates of all kinds.
func testMembers(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	cases := map[string]reviewtest.Creation{}
	for _, name := range []string{
		"cloneSetTemplate", "advancedStatefulSetTemplate", "statefulSetTemplate",
		"deploymentTemplate",
	} {
		at, of := "spec.template."+name+".spec", member(name, "")
		cases[name] = reviewtest.Creation{
			Patch: strings.Replace(of, `"name":"web","image"`, `"name":"A b","image"`, 1), Want: at +
				".template.spec.containers[0].name",
		}
		if name == "cloneSetTemplate" {
			cases[name] = reviewtest.Creation{
				Patch: `{"template":{"cloneSetTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"A b"}]}}}}}}`,
				Want:  cases[name].Want,
			}
		}
		if strategy := map[string]string{
			"deploymentTemplate":  "strategy",
			"statefulSetTemplate": "updateStrategy",
		}[name]; strategy != "" {
			cases[name+" of a strategy"] = reviewtest.Creation{
				Patch: strings.Replace(of, `"spec":{"selector"`, `"spec":{"`+strategy+`":{"type":"Gently"},"selector"`, 1),
				Want:  at + "." + strategy,
			}
		}
	}
	k.Creations(t, g, denied, cases)
	good := k.New(t, "v1beta1", g.Namespace(t), member("statefulSetTemplate", ""))
	if err := g.Client.Create(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	policy := reviewtest.Field(good, "spec", "template", "statefulSetTemplate", "spec", "template", "spec", "dnsPolicy")
	if policy != "ClusterFirst" {
		t.Errorf("dnsPolicy %v", policy)
	}
}

// many are subsets, as JSON.
func many(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`{"name":"s%d"}`, i)
	}
	return strings.Join(names, ",")
}

func reviewUnitedDeployments(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const adaptive = `"scheduleStrategy":{"type":"Adaptive","adaptive":{`
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"nothing is set":    {},
		"no replicas":       {Patch: member("deploymentTemplate", `{"replicas":null}`)},
		"a negative limit":  {Patch: `{"revisionHistoryLimit":-1}`, Want: "spec.revisionHistoryLimit"},
		"an empty selector": {Patch: `{"selector":{"matchLabels":null}}`, Want: "spec.selector"},
		"no template":       {Patch: `{"template":null}`, Want: "spec.template"},
		"two templates": {
			Patch: `{"template":{"deploymentTemplate":{"metadata":{"labels":{"app":"web"}},` +
				`"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}}}`,
			Want: "spec.template",
		},
		"a bad name":        {Patch: `{"topology":{"subsets":[{"name":"A"},{"name":"b"}]}}`, Want: "spec.topology.subsets"},
		"a name twice":      {Patch: `{"topology":{"subsets":[{"name":"b"},{"name":"b"}]}}`, Want: "spec.topology.subsets"},
		"very many subsets": {Patch: `{"topology":{"subsets":[` + many(500) + `]}}`},
		"too many subsets":  {Patch: `{"topology":{"subsets":[` + many(513) + `]}}`, Want: "spec.topology.subsets"},
		"shares beside bounds": {
			Patch: `{"topology":{"subsets":[{"name":"a","replicas":2},{"name":"b","maxReplicas":2},{"name":"c"}]}}`,
			Want:  "spec.topology.subsets",
		},
		"all limited": {
			Patch: `{"topology":{"subsets":[{"name":"a","maxReplicas":2},{"name":"b","maxReplicas":9}]}}`,
			Want:  "spec.topology.subsets",
		},
		"bounds": {Patch: `{"topology":{"subsets":[{"name":"a","minReplicas":1,"maxReplicas":"50%"},{"name":"b"}]}}`},
		"shares and Adaptive": {
			Patch: `{"topology":{` + adaptive + `}},"subsets":[{"name":"a","replicas":2},{"name":"b"}]}}`,
			Want:  "spec.topology.subsets",
		},
		"a negative time": {
			Patch: `{"topology":{` + adaptive + `"unschedulableDuration":-1}}}}`,
			Want:  "spec.topology.scheduleStrategy.adaptive",
		},
		"reservation": {Patch: member("deploymentTemplate", `{"topology":{`+adaptive+`"reserveUnschedulablePods":true}}}}`)},
		"reservation, by order": {
			Patch: member("statefulSetTemplate", `{"topology":{`+adaptive+`"reserveUnschedulablePods":true}}}}`),
			Want:  "reserveUnschedulablePods",
		},
		"an unknown partition": {
			Patch: `{"updateStrategy":{"manualUpdate":{"partitions":{"x":1}}}}`,
			Want:  "spec.updateStrategy.manualUpdate.partitions",
		},
		"a negative partition": {
			Patch: `{"updateStrategy":{"manualUpdate":{"partitions":{"a":-1}}}}`,
			Want:  "spec.updateStrategy.manualUpdate.partitions",
		},
		"a partition": {Patch: `{"updateStrategy":{"manualUpdate":{"partitions":{"a":1}}}}`},
		"a partition of none": {
			Patch: member("deploymentTemplate", `{"updateStrategy":{"manualUpdate":{"partitions":{"a":1}}}}`),
			Want:  "spec.updateStrategy.manualUpdate.partitions",
		},
	})
	exists := func(key string) map[string]any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": "Exists"}}}
	}
	subset := func(name, field string, value any) map[string]any { return map[string]any{"name": name, field: value} }
	b, tolerations := map[string]any{"name": "b"}, []any{map[string]any{"operator": "Exists"}}
	k.Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"another selector": {Field: "selector", Value: exists("app"), Want: "spec.selector"},
		"another term": {
			Field: "topology.subsets", Value: []any{subset("a", "nodeSelectorTerm", exists("zone")), b},
			Want: "nodeSelectorTerm",
		},
		"another toleration": {
			Field: "topology.subsets", Value: []any{subset("a", "tolerations", tolerations)}, Want: "tolerations",
		},
		"another order": {Field: "topology.subsets", Value: []any{b, map[string]any{"name": "a"}}},
		"another name":  {Field: "topology.subsets", Value: []any{subset("c", "nodeSelectorTerm", exists("zone")), b}},
		"more pods":     {Field: "replicas", Value: int64(7)},
	})
}

func workloadSpreads() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "WorkloadSpread", Bad: `{"subsets":[]}`, Code: 400, At: []string{"spec.subsets"},
		Recorded: []string{"3-updated"},
		Spec: as(`{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
			"subsets":[{"name":"a","maxReplicas":3},{"name":"b"}]}`),
	}, own: testPatches, policy: reviewSpreads, closed: 403, text: "feature gate WorkloadSpread must be on"}
}

// testPatches has a patch tried with the template of the target: by the API server, with a path in the patch.
func testPatches(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	k.Prepare = func(t *testing.T, g *reviewtest.Ground, namespace string) {
		labels := map[string]string{"app": "web"}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "m"}}},
		}
		if err := g.Client.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	const at = "spec.subsets[1].patch"
	of := func(patch string) string {
		return `{"subsets":[{"name":"a","maxReplicas":1},{"name":"b","patch":` + patch + `}]}`
	}
	main := func(more string) string { return of(`{"spec":{"containers":[{"name":"main",` + more + `}]}}`) }
	k.Creations(t, g, denied, map[string]reviewtest.Creation{
		"labels":    {Patch: of(`{"metadata":{"labels":{"zone":"b"}}}`)},
		"resources": {Patch: main(`"resources":{"limits":{"cpu":"1"}}`)},
		"an unknown volume": {
			Patch: main(`"volumeMounts":[{"name":"x","mountPath":"/x"}]`), Want: at + ".spec.containers[0].volumeMounts[0].name",
		},
		"an image missing":  {Patch: of(`{"spec":{"containers":[{"name":"more"}]}}`), Want: at + ".spec.containers["},
		"a wrong type":      {Patch: of(`{"spec":{"containers":"x"}}`), Want: at + ": "},
		"a wrong quantity":  {Patch: main(`"resources":{"limits":{"cpu":"x"}}`), Want: at + ": "},
		"an unknown policy": {Patch: of(`{"spec":{"restartPolicy":"Sometimes"}}`), Want: at + ".spec.restartPolicy"},
	})
}

func reviewSpreads(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	subsets := func(limits ...string) string {
		text := `{"subsets":[`
		for i, limit := range limits {
			if i > 0 {
				text += ","
			}
			text += `{"name":"` + string(rune('a'+i)) + `"`
			if limit != "" {
				text += `,"maxReplicas":` + limit
			}
			text += "}"
		}
		return text + "]}"
	}
	adaptive := func(seconds, more string) string {
		return `{"scheduleStrategy":{"type":"Adaptive","adaptive":{"rescheduleCriticalSeconds":` + seconds + `}}` + more + `}`
	}
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"good":                {Version: "v1beta1"},
		"an empty target":     {Version: "v1beta1", Patch: `{"targetRef":{"name":""}}`, Want: "spec.targetRef"},
		"no subsets":          {Version: "v1alpha1", Patch: `{"subsets":[]}`, Want: "spec.subsets"},
		"a name twice":        {Version: "v1beta1", Patch: `{"subsets":[{"name":"a"},{"name":"a"}]}`, Want: "spec.subsets"},
		"no name":             {Version: "v1beta1", Patch: `{"subsets":[{"name":""}]}`, Want: "spec.subsets"},
		"mixed limits":        {Version: "v1beta1", Patch: subsets(`1`, `"30%"`, ``), Want: "spec.subsets"},
		"a negative limit":    {Version: "v1alpha1", Patch: subsets(`-1`, ``), Want: "spec.subsets"},
		"a share of nonsense": {Version: "v1beta1", Patch: subsets(`"x"`, ``), Want: "spec.subsets"},
		"a fraction":          {Version: "v1beta1", Patch: subsets(`"0.2%"`, ``), Want: "spec.subsets"},
		"a whole fraction":    {Version: "v1beta1", Patch: subsets(`"20.0%"`, ``)},
		"too little":          {Version: "v1beta1", Patch: subsets(`"40%"`, `"20%"`, `"20%"`), Want: "spec.subsets"},
		"all":                 {Version: "v1beta1", Patch: subsets(`"40%"`, `"20%"`, `"40%"`)},
		"too much":            {Version: "v1beta1", Patch: subsets(`"40%"`, `"70%"`, ``), Want: "spec.subsets"},
		"a share of a StatefulSet": {
			Version: "v1beta1",
			Patch:   `{"targetRef":{"kind":"StatefulSet"},"subsets":[{"name":"a","maxReplicas":"50%"},{"name":"b"}]}`,
			Want:    "spec.subsets",
		},
		"adaptive without the type": {
			Version: "v1beta1", Patch: `{"scheduleStrategy":{"adaptive":{}}}`, Want: "spec.scheduleStrategy.type",
		},
		"adaptive and a limit": {
			Version: "v1beta1", Patch: adaptive(`5`, `,"subsets":[{"name":"a"},{"name":"b","maxReplicas":1}]`),
			Want: "spec.scheduleStrategy.adaptive",
		},
		"adaptive, one subset": {Version: "v1beta1", Patch: adaptive(`1000`, `,"subsets":[{"name":"a","maxReplicas":1}]`)},
		"negative seconds": {
			Version: "v1alpha1", Patch: adaptive(`-1`, ``), Want: "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds",
		},
		"too many seconds": {
			Version: "v1beta1", Patch: adaptive(`296`, ``), Want: "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds",
		},
	})
	k.Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"another target":  {Field: "targetRef.name", Value: "db", Want: "spec.targetRef"},
		"another version": {Field: "targetRef.apiVersion", Value: "apps/v2"},
		"other subsets":   {Field: "subsets", Value: []any{map[string]any{"name": "z"}}},
	})
}

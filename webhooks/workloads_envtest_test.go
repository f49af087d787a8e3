//go:build envtest

package webhooks_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

// as returns a spec that both versions have.
func as(spec string) func(string) string { return func(string) string { return spec } }

const selected = `{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},
	"spec":{"containers":[{"name":"main","image":"app:1"}]}}}`

func statefulSets() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "StatefulSet", Bad: `{"updateStrategy":{"type":"x"}}`, Code: 422, At: []string{"spec.updateStrategy.type"},
		Spec: as(selected[:len(selected)-1] + `,"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{
			"accessModes":["ReadWriteOnce"],"storageClassName":"slow","resources":{"requests":{"storage":"1Gi"}}}}]}`),
		Recorded: []string{"1-created"}, Fields: []string{"template", "volumeClaimTemplates", "updateStrategy"},
		Number: "replicas", Kept: `{"reserveOrdinals":[1,"3-5"],"ordinals":{"start":2},"scaleStrategy":{"maxUnavailable":1},
			"volumeClaimUpdateStrategy":{"type":"OnPodRollingUpdate"},"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}},
			"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"}}`,
	}, own: testExpansion, policy: reviewStatefulSets}
}

// testExpansion has a class that cannot expand rejected, by an API server that has it.
func testExpansion(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": "slow"},
		"provisioner": "example.com/none",
	}}
	if err := g.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	claims := reviewtest.Field(k.New(t, "v1beta1", "", ""), "spec", "volumeClaimTemplates").([]any)
	if err := unstructured.SetNestedField(claims[0].(map[string]any), "2Gi", "spec", "resources", "requests",
		"storage"); err != nil {
		t.Fatal(err)
	}
	k.With(`{"volumeClaimUpdateStrategy":{"type":"OnPodRollingUpdate"}}`).Updates(t, g, "does not allow volume expansion",
		map[string]reviewtest.Update{
			"grows": {Field: "volumeClaimTemplates", Value: claims, Want: "spec.volumeClaimTemplates[data].spec.resources"},
		})
}

func reviewStatefulSets(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"nothing is set": {Version: "v1beta1"},
		"a type of pods": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"type":"ReCreate"}}`, Want: "spec.updateStrategy.type",
		},
		"an empty type": {
			Version: "v1alpha1", Patch: `{"updateStrategy":{"type":"","rollingUpdate":{"podUpdatePolicy":""}}}`,
		},
		"an unknown policy": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"Gently"}}}`,
			Want: "podUpdatePolicy",
		},
		"a negative partition": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"rollingUpdate":{"partition":-1}}}`,
			Want: "spec.updateStrategy.rollingUpdate.partition",
		},
		"an unknown order": {
			Version: "v1beta1", Patch: `{"podManagementPolicy":"Sometimes"}`, Want: "spec.podManagementPolicy",
		},
		"an injected volume": {
			Version: "v1beta1",
			Patch: `{"template":{"spec":{"containers":[{"name":"main","image":"app:1","volumeMounts":[{"name":"injected",` +
				`"mountPath":"/i"}]}]}}}`,
		},
	})
	k.Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"another selector": {
			Field: "selector",
			Value: map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}, Want: "spec: ",
		},
		"another service": {Field: "serviceName", Value: "other", Want: "spec: "},
		"another order":   {Field: "podManagementPolicy", Value: "Parallel", Want: "spec: "},
		"the same order":  {Field: "podManagementPolicy", Value: "OrderedReady"},
		"more pods":       {Field: "replicas", Value: int64(4)},
	})
}

func daemonSets() entry {
	const rolling = `{"updateStrategy":{"rollingUpdate":`
	return entry{Kind: reviewtest.Kind{
		Name: "DaemonSet", Bad: `{"minReadySeconds":-1}`, Code: 422, At: []string{"spec.minReadySeconds"}, Spec: as(selected),
		Recorded: []string{"1-created"}, Number: "minReadySeconds", Kept: `{"scaleStrategy":{"partitionedScaling":true},
			"burstReplicas":"10%","lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}},
			"updateStrategy":{"rollingUpdate":{"maxSurge":"30%","partition":2,"paused":true}}}`,
	}, policy: reviewDaemonSets, worse: `{"burstReplicas":"y"}`, faulty: []string{
		`{"minReadySeconds":-1,"revisionHistoryLimit":-1,"burstReplicas":"x","lifecycle":{"inPlaceUpdate":{}},
			"updateStrategy":
			{"rollingUpdate":{"rollingUpdateType":"Gently","maxUnavailable":1,"maxSurge":1,"partition":"x"}}}`,
		rolling + `{"rollingUpdateType":"InPlaceIfPossible","maxUnavailable":0,"maxSurge":"5%"}}}`,
		`{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0}}}`,
	}}
}

func reviewDaemonSets(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const at = "spec.updateStrategy.rollingUpdate."
	rolling := func(block string) string { return `{"updateStrategy":{"rollingUpdate":` + block + `}}` }
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"nothing is set":   {Version: "v1beta1"},
		"a negative time":  {Version: "v1alpha1", Patch: `{"minReadySeconds":-1}`, Want: "spec.minReadySeconds"},
		"a negative limit": {Version: "v1beta1", Patch: `{"revisionHistoryLimit":-1}`, Want: "spec.revisionHistoryLimit"},
		"a hook around updates in place": {
			Version: "v1beta1", Patch: `{"lifecycle":{"inPlaceUpdate":{}}}`, Want: "spec.lifecycle.inPlaceUpdate",
		},
		"a hook before deletion": {Version: "v1alpha1", Patch: `{"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}}}`},
		"a burst of nothing":     {Version: "v1beta1", Patch: `{"burstReplicas":0}`, Want: "spec.burstReplicas"},
		"a burst of no share":    {Version: "v1beta1", Patch: `{"burstReplicas":"0%"}`, Want: "spec.burstReplicas"},
		"a burst beyond all":     {Version: "v1beta1", Patch: `{"burstReplicas":"150%"}`},
		"a small burst":          {Version: "v1beta1", Patch: `{"burstReplicas":"0.01%"}`},
		"an unknown strategy": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"type":"Never"}}`, Want: "spec.updateStrategy.type",
		},
		"empty types": {
			Version: "v1alpha1", Patch: `{"updateStrategy":{"type":"","rollingUpdate":{"rollingUpdateType":""}}}`,
		},
		"OnDelete takes the block as is": {
			Version: "v1beta1", Patch: `{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"maxUnavailable":"x"}}}`,
		},
		"an unknown update": {
			Version: "v1alpha1", Patch: rolling(`{"rollingUpdateType":"Gently"}`), Want: at + "rollingUpdateType",
		},
		"Surging of v1alpha1": {Version: "v1alpha1", Patch: rolling(`{"rollingUpdateType":"Surging"}`)},
		"Surging of v1beta1": {
			Version: "v1beta1", Patch: rolling(`{"rollingUpdateType":"Surging"}`), Want: at + "rollingUpdateType",
		},
		"Surging with one unavailable": {
			Version: "v1alpha1", Patch: rolling(`{"rollingUpdateType":"Surging","maxUnavailable":1}`), Want: at + "maxSurge",
		},
		"a surge alone": {Version: "v1beta1", Patch: rolling(`{"maxSurge":"50%"}`)},
		"both bounds":   {Version: "v1beta1", Patch: rolling(`{"maxSurge":1,"maxUnavailable":"1%"}`), Want: at + "maxSurge"},
		"neither bound": {
			Version: "v1beta1", Patch: rolling(`{"maxSurge":"0%","maxUnavailable":0}`), Want: at + "maxUnavailable",
		},
		"no bound alone": {Version: "v1alpha1", Patch: rolling(`{"maxUnavailable":0}`), Want: at + "maxUnavailable"},
		"a bound beyond all nodes": {
			Version: "v1beta1", Patch: rolling(`{"maxUnavailable":"100.5%"}`), Want: at + "maxUnavailable",
		},
		"nonsense beside a bound": {
			Version: "v1beta1", Patch: rolling(`{"maxUnavailable":1,"maxSurge":"1"}`), Want: at + "maxSurge",
		},
		"a surge in place": {
			Version: "v1beta1", Patch: rolling(`{"rollingUpdateType":"InPlaceIfPossible","maxSurge":1}`), Want: at + "maxSurge",
		},
		"a negative partition": {Version: "v1beta1", Patch: rolling(`{"partition":-1}`), Want: at + "partition"},
		"a partition of a negative share": {
			Version: "v1beta1", Patch: rolling(`{"partition":"-0.1%"}`), Want: at + "partition",
		},
		"a partition of a dot": {Version: "v1beta1", Patch: rolling(`{"partition":".%"}`), Want: at + "partition"},
	})
	k.Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"another selector": {
			Field: "selector",
			Value: map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}, Want: "spec: ",
		},
		"another time": {Field: "minReadySeconds", Value: int64(4)},
		"a worse strategy": {
			Field: "updateStrategy", Value: map[string]any{"type": "Never"}, Want: "spec.updateStrategy.type",
		},
	})
}

func broadcastJobs() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "BroadcastJob", Bad: `{"failurePolicy":{"type":"x"}}`, Code: 422, At: []string{"spec.failurePolicy.type"},
		Spec:     as(`{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"check:1"}]}}}`),
		Recorded: []string{"1-created"}, Number: "parallelism", Kept: `{"parallelism":"20%","paused":true,
			"completionPolicy":{"type":"Always","activeDeadlineSeconds":7,"ttlSecondsAfterFinished":0},
			"failurePolicy":{"type":"Pause","restartLimit":3}}`,
		Reworded: map[string]string{"no template": "spec.template.spec.containers: Required value"},
	}, policy: reviewBroadcastJobs}
}

func reviewBroadcastJobs(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	k.Creations(t, g, k.PolicyName(), map[string]reviewtest.Creation{
		"nothing is set": {},
		"everything is set": {
			Patch: `{"parallelism":"50%","completionPolicy":{"type":"Always","activeDeadlineSeconds":0,` +
				`"ttlSecondsAfterFinished":0},"failurePolicy":{"type":"Continue","restartLimit":2}}`,
		},
		"a negative number":   {Patch: `{"parallelism":-1}`, Want: "spec.parallelism: "},
		"a bad percentage":    {Patch: `{"parallelism":"half"}`, Want: "spec.parallelism: "},
		"a fraction":          {Patch: `{"parallelism":"33.3%"}`},
		"a negative fraction": {Patch: `{"parallelism":"-0.5%"}`, Want: "spec.parallelism: "},
		"a point alone":       {Patch: `{"parallelism":".%"}`, Want: "spec.parallelism: "},
		"a completion":        {Patch: `{"completionPolicy":{"type":"Sometimes"}}`, Want: "spec.completionPolicy.type: "},
		"a life without end": {
			Patch: `{"completionPolicy":{"type":"Never","ttlSecondsAfterFinished":1}}`,
			Want:  "spec.completionPolicy.ttlSecondsAfterFinished: ",
		},
		"a deadline of never": {
			Patch: `{"completionPolicy":{"type":"Never","activeDeadlineSeconds":1}}`,
			Want:  "spec.completionPolicy.activeDeadlineSeconds: ",
		},
		"a negative life": {
			Patch: `{"completionPolicy":{"ttlSecondsAfterFinished":-1}}`,
			Want:  "spec.completionPolicy.ttlSecondsAfterFinished: ",
		},
		"a negative deadline": {
			Patch: `{"completionPolicy":{"activeDeadlineSeconds":-1}}`, Want: "spec.completionPolicy.activeDeadlineSeconds: ",
		},
		"a failure policy": {Patch: `{"failurePolicy":{"type":"Retry"}}`, Want: "spec.failurePolicy.type: "},
		"a negative limit": {Patch: `{"failurePolicy":{"restartLimit":-1}}`, Want: "spec.failurePolicy.restartLimit: "},
		"pods without an end": {
			Patch: `{"template":{"spec":{"restartPolicy":"Always"}}}`, Want: "spec.template.spec.restartPolicy: ",
		},
		"a label of the kind": {
			Patch: `{"template":{"metadata":{"labels":{"broadcastjob-name":"x"}}}}`, Want: "spec.template.metadata.labels: ",
		},
		"an empty label of it": {Patch: `{"template":{"metadata":{"labels":{"broadcastjob-name":""}}}}`},
	})
	k.Updates(t, g, k.PolicyName(), map[string]reviewtest.Update{
		"parallelism":  {Field: "parallelism", Value: int64(1)},
		"a completion": {Field: "completionPolicy", Value: map[string]any{"type": "Never"}},
		"failures":     {Field: "failurePolicy", Value: map[string]any{"type": "Continue"}},
		"a template":   {Field: "template.metadata", Value: map[string]any{"labels": map[string]any{"a": "b"}}},
		"a policy of end": {
			Field: "failurePolicy", Value: map[string]any{"type": "Retry"}, Want: "spec.failurePolicy.type: ",
		},
	})
	for _, name := range []string{"with.dot", strings.Repeat("x", 64)} {
		job := k.New(t, "v1beta1", "default", "")
		job.SetGenerateName("")
		job.SetName(name)
		if err := reviewtest.Says(g.Client.Create(t.Context(), job, client.DryRunAll), k.PolicyName(),
			"metadata.name: "); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

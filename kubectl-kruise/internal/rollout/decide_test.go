package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/write"
)

// object reads an object of apps.kruise.io/v1beta1.
func object(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	fields, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(fields, &o.Object); err != nil { // of apimachinery: integers stay integers
		t.Fatal(err)
	}
	o.SetKind(kind)
	o.SetName("web")
	if o.GetAPIVersion() == "" {
		o.SetAPIVersion("apps.kruise.io/v1beta1")
	}
	return o
}

// inPlaceObject returns a set of apps/v1 of three pods, of which some are updated in place.
func inPlaceObject(annotations, state string, updated int, spec string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
metadata: {annotations: {kruisekit.dev/rollout: '{}', kruisekit.dev/rollout-status:
  '{"state":%q,"pods":3,"ready":3,"updated":%[2]d,"inPlace":%[2]d,"waiting":%[3]d,"note":"why"}'%[4]s}}
spec: {%[5]s}`, state, updated, 3-updated, annotations, spec)
}

func TestStatus(t *testing.T) {
	const inPlace = `{apiVersion: apps.kruise.io/v1alpha1, metadata: {generation: 2}, spec: {replicas: 5,
		updateStrategy: {type: InPlaceIfPossible, partition: 50%}}, status: {observedGeneration: 2, `
	for name, row := range map[string]struct {
		kind, object string
		want         string
		done         bool
		err          string
	}{
		"a generation that is not observed": {
			kind: "CloneSet", object: "{metadata: {generation: 2}, status: {observedGeneration: 1}}",
			want: "Waiting for CloneSet spec update to be observed...",
		},
		"a percentage of a partition rounds up what stays": {
			kind: "CloneSet", object: inPlace + "updatedReplicas: 1, readyReplicas: 5}}",
			want: "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...",
		},
		"a set in place waits for readiness": {
			kind: "CloneSet", object: inPlace + "updatedReplicas: 2, readyReplicas: 3}}",
			want: "Waiting for 2 pods to be ready...",
		},
		"a partition that is reached": {
			kind: "CloneSet", object: inPlace + "updatedReplicas: 2, readyReplicas: 5}}",
			want: "partitioned roll out complete: 2 new pods have been updated...", done: true,
		},
		"a set that recreates": {
			kind: "CloneSet", want: "CloneSet rolling update complete 1 pods at revision web-2...", done: true,
			object: "{status: {updatedReplicas: 1, readyReplicas: 1, updateRevision: web-2}}",
		},
		"a partition of ordinals that start above zero": {
			kind: "StatefulSet",
			object: "{spec: {replicas: 3, ordinals: {start: 5}, updateStrategy: {rollingUpdate: {partition: 6}}}, " +
				"status: {updatedReplicas: 1, readyReplicas: 3}}",
			want: "Waiting for partitioned roll out to finish:1 out of 2 new pods have been updated...",
		},
		"a StatefulSet without a strategy": {
			kind: "StatefulSet", object: "{status: {updatedReplicas: 1, readyReplicas: 1, updateRevision: web-2}}",
			want: "Advanced StatefulSet rolling update complete 1 pods at revision web-2...", done: true,
		},
		"a DaemonSet": {
			kind:   "DaemonSet",
			object: "{status: {desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}",
			want:   "Waiting for daemon set rollout to finish: 1 out of 2 new pods have been updated...",
		},
		"a UnitedDeployment with a partition of a subset": {
			kind: "UnitedDeployment",
			object: "{spec: {replicas: 4}, status: {updatedReplicas: 3, readyReplicas: 4, subsetStatuses: " +
				"[{name: a, replicas: 2, partition: 1}, {name: b, replicas: 2}]}}",
			want: "partitioned roll out complete: 3 new pods have been updated...", done: true,
		},
		"a SidecarSet": {
			kind: "SidecarSet", object: "{status: {matchedPods: 3, updatedPods: 1, readyPods: 3}}",
			want: "Waiting for partitioned roll out to finish: 1 out of 3 pods have been updated...",
		},
		"a job that runs": {
			kind: "BroadcastJob", object: "{status: {desired: 3, succeeded: 1, active: 2, phase: running}}",
			want: "Waiting for BroadcastJob to finish: 1 of 3 pods succeeded, 2 active, 0 failed",
		},
		"a job that failed": {
			kind: "BroadcastJob", object: "{status: {desired: 3, failed: 1, phase: failed}}", err: "job web failed",
		},
		"a Rollout": {
			kind: "Rollout", object: "{apiVersion: rollouts.kruise.io/v1beta1, status: {phase: Healthy}}",
			want: "rollout web is healthy", done: true,
		},
		"a held Deployment": {
			kind: "Deployment", object: inPlaceObject(`, kruisekit.dev/rollout-hold: "1"`, "Progressing", 1, "paused: true"),
			want: "Progressing, held: 1 of 3 pods updated: 1 in place, 0 recreated; 0 in progress, 2 waiting; why",
		},
		"the status of an older template": {
			kind: "Deployment", object: inPlaceObject("", "Complete", 3, "replicas: 3") + "\nstatus: {updatedReplicas: 0}",
			want: "Complete: 3 of 3 pods updated: 3 in place, 0 recreated; 0 in progress, 0 waiting; why",
		},
		"a Deployment with all pods": {
			kind: "Deployment", object: inPlaceObject("", "Complete", 3, "replicas: 3") + "\nstatus: {updatedReplicas: 3}",
			want: "Complete: 3 of 3 pods updated: 3 in place, 0 recreated; 0 in progress, 0 waiting; why", done: true,
		},
		"a partition that a hold lasts for": {
			kind: "Deployment", done: true,
			object: strings.NewReplacer("{}", `{"partition":2}`, `"waiting":2`, `"waiting":0`).Replace(inPlaceObject(
				`, kruisekit.dev/rollout-hold: "1"`, "Progressing", 1, "paused: true, replicas: 3")),
			want: "Progressing, held: 1 of 3 pods updated: 1 in place, 0 recreated; 0 in progress, 0 waiting; why",
		},
		"a DaemonSet in place": {
			kind: "DaemonSet", done: true,
			object: inPlaceObject("", "Complete", 3, "") +
				"\nstatus: {desiredNumberScheduled: 3, updatedNumberScheduled: 3}",
			want: "Complete: 3 of 3 pods updated: 3 in place, 0 recreated; 0 in progress, 0 waiting; why",
		},
		"a kind without rollouts": {kind: "ImagePullJob", object: "{}", err: "no status viewer"},
	} {
		t.Run(name, func(t *testing.T) {
			line, done, err := rollout.Status(object(t, row.kind, row.object))
			if row.err != "" || err != nil {
				if err == nil || row.err == "" || !strings.Contains(err.Error(), row.err) {
					t.Errorf("%v, want %q", err, row.err)
				}
				return
			}
			if strings.TrimSpace(line) != row.want || done != row.done {
				t.Errorf("%q %v, want %q %v", line, done, row.want, row.done)
			}
		})
	}
}

func TestRestartDecision(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const at, containers = "2026-01-02T03:04:05Z", "/spec/template/spec/containers/"
	variable := map[string]any{"name": "RESTARTED_AT", "value": at}
	const template = `template: {metadata: {annotations: {a: b}}, spec: {containers: [{name: one},
		{name: two, env: [{name: A}]}, {name: three, env: [{name: RESTARTED_AT, value: old}]}]}}}}`
	for name, row := range map[string]struct {
		kind, object string
		want         []write.Op
		err          string
	}{
		"a workload that recreates gets an annotation": {
			kind: "CloneSet", object: "{metadata: {generation: 3}, spec: {" + template,
			want: []write.Op{
				{Op: "test", Path: "/metadata/generation", Value: int64(3)},
				{Op: "add", Path: "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt", Value: at},
			},
		},
		"a workload in place gets a variable in each container": {
			kind:   "DaemonSet",
			object: "{spec: {updateStrategy: {rollingUpdate: {rollingUpdateType: InPlaceIfPossible}}, " + template,
			want: []write.Op{
				{Op: "test", Path: containers + "0/name", Value: "one"},
				{Op: "add", Path: containers + "0/env", Value: []any{variable}},
				{Op: "test", Path: containers + "1/name", Value: "two"},
				{Op: "add", Path: containers + "1/env/-", Value: variable},
				{Op: "test", Path: containers + "2/name", Value: "three"},
				{Op: "replace", Path: containers + "2/env/0", Value: variable},
			},
		},
		"a workload that updates in place only": {
			kind: "StatefulSet", object: "{spec: {updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}, " + template,
			err: "updates its pods in place only: use kubectl kruise restart statefulset/web",
		},
		"another kind": {kind: "UnitedDeployment", object: "{}", err: "restarting is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			ops, err := rollout.Restart(object(t, row.kind, row.object), now)
			if row.err != "" {
				if err == nil || err.Error() != row.err {
					t.Errorf("%v, want %q", err, row.err)
				}
				return
			}
			if diff := cmp.Diff(row.want, ops); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestFastUndo(t *testing.T) {
	const steps = "{apiVersion: rollouts.kruise.io/v1beta1, spec: {strategy: {canary: {steps: [{replicas: 1}, " +
		"{replicas: 50%}, {replicas: 60%, traffic: 60%}, {replicas: 100%}]}}}, status: {canaryStatus: {currentStepIndex: "
	for name, row := range map[string]struct {
		object, err string
		next        any
	}{
		"the largest step without traffic": {object: steps + "4}}}", next: 2},
		"the first step":                   {object: steps + "1}}}", err: "is already at the first step"},
		"no status":                        {object: "{apiVersion: rollouts.kruise.io/v1beta1}", err: "has no canary"},
	} {
		ops, err := rollout.FastUndo(object(t, "Rollout", row.object))
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(ops) != 2 || ops[1].Value != row.next {
			t.Errorf("%s: %v, %v", name, ops, err)
		}
	}
}

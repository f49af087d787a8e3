package dashboard

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func noMatch() error { return &meta.NoKindMatchError{} }

func TestRows(t *testing.T) {
	for name, row := range map[string]struct {
		object string
		row    func(*unstructured.Unstructured) any
		want   string
	}{
		"a pull job": {
			object: `{apiVersion: apps.kruise.io/v1alpha1, kind: ImagePullJob, metadata: {name: p, namespace: default},
				spec: {image: "docker.io/library/nginx", completionPolicy: {type: Always}},
				status: {desired: 9, active: 1, succeeded: 7, failed: 1, failedNodes: [n1]}}`,
			row: pullOf,
			want: `{"namespace":"default","name":"p","image":"docker.io/library/nginx","ref":"nginx:latest","desired":9,"active":1,` +
				`"succeeded":7,"failed":1,"failedOn":["n1"],"created":0}`,
		},
		"a node": {
			object: `{apiVersion: apps.kruise.io/v1beta1, kind: NodeImage, metadata: {name: node-1},
				spec: {images: {nginx: {tags: [{tag: "1"}, {tag: "2"}]}}},
				status: {desired: 2, imageStatuses: {nginx: {tags: [{tag: "1", phase: Pulling, progress: 40}, {tag: "0", phase: Failed}]}}}}`,
			row:  nodeImageOf,
			want: `{"name":"node-1","pulls":[{"ref":"nginx:1","phase":"Pulling","progress":40},{"ref":"nginx:2","phase":"Waiting"}]}`,
		},
		"a node without images": {
			object: `{apiVersion: apps.kruise.io/v1alpha1, kind: NodeImage, metadata: {name: node-1}}`,
			row:    nodeImageOf, want: `{"name":"node-1","pulls":[]}`,
		},
		"a budget": {
			object: `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: b, namespace: default},
				spec: {targetRef: {apiVersion: a, kind: CloneSet, name: web}, minAvailable: 80%},
				status: {totalReplicas: 5, desiredAvailable: 4, currentAvailable: 4, unavailableAllowed: 0,
					unavailablePods: {web-b: "2026-01-01T00:00:00Z", web-a: "2026-01-01T00:00:00Z"}}}`,
			row: budgetOf,
			want: `{"namespace":"default","name":"b","target":"CloneSet web","bound":"minAvailable 80%","total":5,"desired":4,` +
				`"available":4,"allowed":0,"unavailable":["web-a","web-b"]}`,
		},
		"a marker": {
			object: `{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {name: m, namespace: default},
				spec: {selector: {matchLabels: {a: b}}, probes: [{name: p, containerName: c, probe: {exec: {command: [x]}},
					markerPolicy: [{state: Succeeded, labels: {warm: "yes"}}]}]}, status: {matchedPods: 2}}`,
			row: markerOf,
			want: `{"namespace":"default","name":"m","selector":"a=b","matched":2,` +
				`"probes":[{"name":"p","container":"c","marks":"Succeeded: label warm=yes"}]}`,
		},
		"probes of a node, of one namespace": {
			object: `{apiVersion: apps.kruise.io/v1alpha1, kind: NodePodProbe, metadata: {name: node-1}, spec: {podProbes: [
					{name: web-a, namespace: default, uid: a, IP: "", probes: [{name: "m#p", containerName: c, probe: {}}]},
					{name: web-b, namespace: default, uid: b, IP: "", probes: [{name: "m#p", containerName: c, probe: {}}]},
					{name: x, namespace: other, uid: x, IP: "", probes: [{name: "m#p", containerName: c, probe: {}}]}]},
				status: {podProbeStatuses: [{name: web-a, namespace: default, uid: a,
					probeStates: [{name: "m#p", state: Failed, message: cold}]}]}}`,
			row: nodeProbesOf("default"),
			want: `{"name":"node-1","states":[{"namespace":"default","pod":"web-a","probe":"m#p","state":"Failed","message":"cold"},` +
				`{"namespace":"default","pod":"web-b","probe":"m#p","state":"Unknown"}]}`,
		},
		"an event about a pod of the workload": {
			object: `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, reason: Failed, message: m,
				lastTimestamp: "1970-01-01T00:01:40Z", count: 3, involvedObject: {kind: Pod, name: web-a}}`,
			row:  warningsOf("web"),
			want: `{"about":"Pod web-a","reason":"Failed","message":"m","count":3,"last":100}`,
		},
		"an event about another object": {
			object: `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default},
				involvedObject: {kind: Pod, name: website-a}}`,
			row: warningsOf("web"), want: `null`,
		},
		"a SidecarSet": {
			object: `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: s, uid: s},
				spec: {selector: {matchLabels: {a: b}}, containers: [{name: c, image: "i:1"}]},
				status: {matchedPods: 4, updatedPods: 1, readyPods: 3}}`,
			row: func(o *unstructured.Unstructured) any {
				row, is := workloadOf(o).(workloadRow)
				if !is || len(row.Update) < 20 {
					return row
				}
				return row.counts
			},
			want: `{"replicas":4,"updated":1,"ready":3,"available":3}`,
		},
		"an object that is broken": {
			object: `{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {name: p}, spec: 3}`,
			row: func(o *unstructured.Unstructured) any {
				row, is := pullOf(o).(broken)
				return is && row.Name == "p" && row.Error != ""
			},
			want: `true`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(row.row(object(t, "v1beta1", row.object)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, string(data)); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStateOfPods(t *testing.T) {
	for want, change := range map[string]string{
		"ready":       `status: {phase: Running, conditions: [{type: Ready, status: "True"}]}`,
		"unready":     `status: {phase: Running, conditions: [{type: Ready, status: "False"}]}`,
		"pending":     `status: {phase: Pending}`,
		"failing":     `status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff}}}]}`,
		"succeeded":   `status: {phase: Succeeded}`,
		"terminating": `metadata: {name: web-a, deletionTimestamp: "2026-01-01T00:00:00Z"}`,
	} {
		o := object(t, "v1beta1", "{apiVersion: v1, kind: Pod, "+change+"}")
		r := ownerOfPods{kind: "CloneSet"}
		row, is := podOf(o, r.revisionOf).(podRow)
		if !is || row.State != want {
			t.Errorf("%s: %v", want, row)
		}
		if (row.Why == "") != (want == "ready" || want == "succeeded") {
			t.Errorf("%s because %q", want, row.Why)
		}
	}
}

// Texts are cut between characters.
func TestShort(t *testing.T) {
	long := short(strings.Repeat("é", maxText))
	if !utf8.ValidString(long) || len(long) > maxText+4 {
		t.Errorf("%d bytes, %q", len(long), long)
	}
	note, wait := explainFailure(list{kind: kindOfPods()}, errors.New("broken"))
	if note != "Pod cannot be read, and is tried again: broken" || wait != 0 {
		t.Error(note, wait)
	}
}

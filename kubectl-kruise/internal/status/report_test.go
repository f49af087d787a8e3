package status_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/status"
)

const cloneSet = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web, namespace: default, generation: 2}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, paused: true, partition: 1}}
  template:
    spec: {containers: [{name: app, image: "app:2"}]}
status:
  observedGeneration: 2
  updatedReplicas: 1
  readyReplicas: 2
  updateRevision: web-2
  conditions:
  - {type: Stalled, status: "True", reason: ImagePullFailed, message: "pod web-a"}
  - {type: Progressing, status: "True"}
`

// podOf returns a pod of a revision.
func podOf(name, revision string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kruise.PodRevisionLabelKey: revision}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: ready == corev1.ConditionTrue}},
		},
	}
}

func TestReport(t *testing.T) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(cloneSet), &o.Object); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(reason string, age time.Duration) corev1.Event {
		return corev1.Event{
			Type: corev1.EventTypeWarning, Reason: reason, Message: "m", LastTimestamp: metav1.NewTime(now.Add(-age)),
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-a"}, Count: 2,
		}
	}
	r := status.Of(status.Input{
		Object: o, Now: now,
		Pods: []*corev1.Pod{
			podOf("web-a", "web-2", corev1.ConditionFalse), podOf("web-b", "web-1", corev1.ConditionTrue),
			podOf("web-c", "web-1", corev1.ConditionTrue),
		},
		Events: []corev1.Event{event("BackOff", time.Minute), event("BackOff", 2*time.Minute), event("Old", 2*time.Hour)},
	})
	var out bytes.Buffer
	r.Print(&out, 2)
	want := `CloneSet default/web
  Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...
* web-2 ▒▒▒▒▒▒▒▒▒▒···················· 1 of 3, 0 ready
  web-1 ████████████████████·········· 2 of 3, 2 ready
Why:
  condition Stalled=True ImagePullFailed: pod web-a
  paused by spec.updateStrategy.rollingUpdate.paused
  partition 1 keeps 1 of 3 pods at the older revision
  event BackOff (4 times, last about pod web-a): m
Pods:
  web-a: container app runs, its readiness probe fails
  web-b: the rollout is paused: kubectl kruise rollout resume; the update is made in place and restarts app
  ... and 1 more, see --pods
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// The pods of a SidecarSet have revisions of their workloads, which are not those of the set.
func TestReportOfSidecarSet(t *testing.T) {
	const sidecarSet = `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: s},
		status: {matchedPods: 4, updatedPods: 1, readyPods: 4, updatedReadyPods: 1, latestRevision: s-2}}`
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(sidecarSet), &o.Object); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	status.Of(status.Input{Object: o}).Print(&out, 0)
	want := `SidecarSet s
  Waiting for partitioned roll out to finish: 1 out of 4 pods have been updated...
* s-2   ███████······················· 1 of 4, 1 ready
  older ██████████████████████········ 3 of 4, 3 ready
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// A held Deployment has the way back. Its pods have the hash of their ReplicaSet before their first update in place.
func TestReportOfHeldDeployment(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, annotations: {
		kruisekit.dev/rollout: '{"paused":true}', kruisekit.dev/rollout-hold: "1", kruisekit.dev/rollout-status:
		'{"state":"Paused","revision":"web-2","pods":2,"ready":2,"updated":1,"inPlace":1,"waiting":1}'}},
		spec: {paused: true, replicas: 2, template: {spec: {containers: [{name: app, image: "app:2"}]}}}}`
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(deployment), &o.Object); err != nil {
		t.Fatal(err)
	}
	updated, old := podOf("web-abc-x", "2", corev1.ConditionTrue), podOf("web-abc-y", "", corev1.ConditionTrue)
	updated.Spec.Containers[0].Image, old.Labels = "app:2", map[string]string{"pod-template-hash": "abc"}
	var out bytes.Buffer
	status.Of(status.Input{Object: o, Pods: []*corev1.Pod{updated, old}}).Print(&out, 0)
	want := `Deployment default/web
  Paused, held: 1 of 2 pods updated: 1 in place, 0 recreated; 0 in progress, 1 waiting
* 2   ███████████████··············· 1 of 2, 1 ready
  abc ███████████████··············· 1 of 2, 1 ready
Why:
  held by kruisekit.dev/rollout-hold until all pods run the change: kubectl kruise rollout undo deployment/web goes back
  paused by the annotation kruisekit.dev/rollout
Pods:
  web-abc-y: the rollout is paused: kubectl kruise rollout resume; the update is made in place and restarts app
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

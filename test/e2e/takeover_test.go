//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// bequest is a state that the reference may leave a CloneSet in.
type bequest struct {
	why string
	// step and set of the recording, and its update revision.
	step, set, revision string
	// owners is the version of the owner in its owner references, if not that of the recording.
	owners string
	// asCreated are pods that are taken from before the update, and then brought into the state by interrupt.
	asCreated []string
	interrupt func(*remains, *testing.T)
	// also is checked in the end.
	also func(*remains, *testing.T)
	// restarts that the update still means, by pod. Without any, nothing is to be written.
	restarts map[string]int32
}

const (
	nextRevision  = "web-58558fbd65"
	first, second = "web-9fn92", "web-tr6ff"
	grace         = 30 * time.Second
)

func bequests() map[string]bequest {
	return map[string]bequest{
		"settled, long ago": {
			step:     "1-created",
			set:      "zones-b-hh6zh",
			revision: "zones-b-hh6zh-587bcb4b95",
			why:      "another policy, no claims, and pods that name the owner in the older version",
			owners:   "apps.kruise.io/v1alpha1",
		},
		"settled and updated": {
			step: "3-updated", set: "web", revision: nextRevision, why: "two revisions, and a state on each pod",
		},
		"between two pods": {
			step: "2-updating", set: "web", revision: nextRevision, why: "one is done, the other waits for its turn",
			restarts: map[string]int32{second: 1},
		},
		"in its grace period": {
			step: "2-updating", set: "web", revision: nextRevision, why: "the change waits in an annotation",
			asCreated: []string{first}, interrupt: (*remains).inGrace, also: (*remains).graceKept,
			restarts: map[string]int32{first: 1, second: 1},
		},
		"patched": {
			step:      "2-updating",
			set:       "web",
			revision:  nextRevision,
			why:       "the kubelet restarts it, and nobody has looked whether that is done",
			asCreated: []string{first},
			interrupt: (*remains).patched,
			restarts:  map[string]int32{first: 1, second: 1},
		},
	}
}

// outOfTraffic is the first write.
func (r *remains) outOfTraffic(t *testing.T) {
	t.Helper()
	r.condition(t, first, corev1.PodCondition{
		Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: kruise.InPlaceUpdateReadyReasonStart,
		LastTransitionTime: metav1.Now(),
	})
}

// mark writes what the second write says in either case.
func mark(t *testing.T, pod *corev1.Pod, state map[string]any) {
	t.Helper()
	now := time.Now().Format(time.RFC3339)
	maps.Copy(pod.Labels, map[string]string{
		kruise.PodRevisionLabelKey: "58558fbd65", kruise.PodTemplateHashLabelKey: "58558fbd65",
		kruise.LifecycleStateKey: string(kruise.LifecycleStateUpdating),
	})
	state["revision"], state["updateTimestamp"] = nextRevision, now
	state["updateEnvFromMetadata"], state["updateImages"] = true, true
	pod.Annotations[kruise.LifecycleTimestampKey], pod.Annotations[kruise.InPlaceUpdateStateKey] = now, compact(t, state)
}

// inGrace is the second write where there is a grace period.
func (r *remains) inGrace(t *testing.T) {
	t.Helper()
	r.outOfTraffic(t)
	r.edit(t, first, func(pod *corev1.Pod) {
		mark(t, pod, map[string]any{"lastContainerStatuses": nil})
		pod.Annotations[kruise.InPlaceUpdateGraceKey] = compact(t, map[string]any{
			"revision": nextRevision, "containerImages": map[string]string{"main": "nginx:1.15.1"},
			"containerRefMetadata":  map[string]any{"main": map[string]any{"annotations": map[string]string{"conf": "2"}}},
			"metaDataPatch":         []byte("{}"),
			"updateEnvFromMetadata": true, "graceSeconds": int(grace.Seconds()),
		})
	})
}

// patched is the second write where there is none, or the third.
func (r *remains) patched(t *testing.T) {
	t.Helper()
	r.outOfTraffic(t)
	r.edit(t, first, func(pod *corev1.Pod) {
		mark(t, pod, map[string]any{
			"lastContainerStatuses": map[string]any{"main": map[string]any{"imageID": statuses(pod)["main"].ImageID}},
			"containerBatchesRecord": []any{map[string]any{
				"timestamp": time.Now().Format(time.RFC3339), "containers": []string{"main"},
			}},
		})
		pod.Annotations["conf"], pod.Spec.Containers[0].Image = "2", "nginx:1.15.1"
	})
}

func compact(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testTakeover goes on where the reference stopped: with these pods, these claims and these revisions.
func (r *remains) testTakeover(t *testing.T) {
	eventually(t, func(ctx context.Context) error { return r.seen(ctx) })
	if r.interrupt != nil {
		r.stillUpdating(t)
	}
	eventually(t, func(ctx context.Context) error {
		if err := r.report(ctx); err != nil {
			return err
		}
		return r.finished(ctx)
	})
	r.check(t)
	if r.also != nil {
		r.also(r, t)
	}
}

// testLeftAlone looks again when much else has happened: other leaders, and none.
func (r *remains) testLeftAlone(t *testing.T) {
	if err := r.finished(t.Context()); err != nil {
		t.Error(err)
	}
	r.check(t)
}

// stillUpdating says that the pod's update has not been taken for done without a reason: no kubelet has yet reported
// that the container runs with what the annotation says.
func (r *remains) stillUpdating(t *testing.T) {
	t.Helper()
	pod := r.pod(t.Context(), t, first)
	for _, c := range pod.Status.Conditions {
		if c.Type == kruise.InPlaceUpdateReady && c.Status != corev1.ConditionFalse {
			t.Errorf("%s: %s is in traffic before its update is done", r.why, first)
		}
	}
}

// seen says whether the manager has been here, which shows in the complaint of the reference: it takes that back.
func (r *remains) seen(ctx context.Context) error {
	set := &v1beta1.CloneSet{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: r.set}, set); err != nil {
		return err
	}
	for _, c := range set.Status.Conditions {
		if c.Type == v1beta1.CloneSetConditionFailedUpdate {
			return fmt.Errorf("the condition of the reference is still there: %+v", c)
		}
	}
	return nil
}

// finished says what keeps the manager from having done what there is to do.
func (r *remains) finished(ctx context.Context) error {
	set := &v1beta1.CloneSet{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: r.set}, set); err != nil {
		return err
	}
	if s, n := set.Status, *set.Spec.Replicas; s.UpdatedAvailableReplicas != n || s.Replicas != n ||
		s.CurrentRevision != r.revision || s.UpdateRevision != r.revision {
		return fmt.Errorf("status is %+v, want revision %s", s, r.revision)
	}
	if set.Generation != 1 {
		return fmt.Errorf("the spec was written: generation %d", set.Generation)
	}
	return r.seen(ctx)
}

// graceKept says that the change was made no sooner than announced.
func (r *remains) graceKept(t *testing.T) {
	t.Helper()
	var state kruise.InPlaceUpdateState
	if err := json.Unmarshal([]byte(r.pod(t.Context(), t, first).Annotations[kruise.InPlaceUpdateStateKey]),
		&state); err != nil {
		t.Fatal(err)
	}
	if len(state.ContainerBatchesRecord) != 1 {
		t.Fatalf("batches: %+v", state.ContainerBatchesRecord)
	}
	if waited := state.ContainerBatchesRecord[0].Timestamp.Sub(state.UpdateTimestamp.Time); waited < grace {
		t.Errorf("the container was changed after %s, want %s", waited, grace)
	}
}

// check compares all that there is with what the reference left.
func (r *remains) check(t *testing.T) {
	t.Helper()
	var pods corev1.PodList
	if err := r.client.List(t.Context(), &pods, client.InNamespace(r.namespace)); err != nil {
		t.Fatal(err)
	}
	now := map[string]*corev1.Pod{}
	for i := range pods.Items {
		now[pods.Items[i].Name] = &pods.Items[i]
	}
	if got, want := slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(r.pods)); !slices.Equal(got, want) {
		t.Fatalf("%s: pods are %v, want %v", r.why, got, want)
	}
	for name, was := range r.pods {
		r.checkPod(t, was, now[name])
	}
	if diff := cmp.Diff(r.revisions, r.storedRevisions(t)); diff != "" {
		t.Errorf("%s: revisions, with their resource versions (-left +now):\n%s", r.why, diff)
	}
	if diff := cmp.Diff(r.claims, r.storedClaims(t)); diff != "" {
		t.Errorf("%s: claims (-left +now):\n%s", r.why, diff)
	}
}

func (r *remains) checkPod(t *testing.T, was, is *corev1.Pod) {
	t.Helper()
	if is.UID != was.UID || is.DeletionTimestamp != nil {
		t.Errorf("%s: %s was %s and is %s, deleted %v", r.why, was.Name, was.UID, is.UID, is.DeletionTimestamp)
	}
	for name, status := range statuses(is) {
		want := int32(0)
		if name == "main" {
			want = r.restarts[was.Name]
		}
		if status.RestartCount != want {
			t.Errorf("%s: %s of %s restarted %d times, want %d", r.why, name, was.Name, status.RestartCount, want)
		}
	}
	written := slices.ContainsFunc(is.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "kruise-manager"
	})
	if want := r.restarts[was.Name] > 0; written != want {
		t.Errorf("%s: the manager wrote %s: %v, want %v", r.why, was.Name, written, want)
	}
	if !ready(is) || is.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStateNormal) {
		t.Errorf("%s: %s is in state %q, with %v", r.why, was.Name, is.Labels[kruise.LifecycleStateKey], is.Status.Conditions)
	}
	if label := is.Labels[kruise.PodRevisionLabelKey]; !strings.HasSuffix(r.revision, label) || label == "" {
		t.Errorf("%s: %s is at revision %q", r.why, was.Name, label)
	}
}

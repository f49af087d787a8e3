package inplace_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

func ownKeys() *kruise.Keys {
	return &kruise.Keys{
		InPlaceState: "own.example.com/state", InPlaceGrace: "own.example.com/grace", InPlaceReady: "OwnUpdateReady",
		Revision: "own.example.com/revision", PendingRevision: "own.example.com/pending-revision",
		PlannedRestarts: "own.example.com/planned-restarts",
	}
}

// TestOwnKeys renames the keys of pods that are filled with anything: what is decided is the same, under other names.
func TestOwnKeys(t *testing.T) {
	r := newRand(t)
	own := ownKeys()
	names := strings.NewReplacer(
		kruise.InPlaceUpdateStateKey, own.InPlaceState, kruise.InPlaceUpdateGraceKey, own.InPlaceGrace,
		string(kruise.InPlaceUpdateReady), string(own.InPlaceReady), kruise.PodRevisionLabelKey, own.Revision,
		kruise.PendingRevisionKey, own.PendingRevision, kruise.PlannedRestartsKey, own.PlannedRestarts,
	)
	renamed := func(pod *corev1.Pod) *corev1.Pod {
		again := &corev1.Pod{}
		if err := json.Unmarshal([]byte(names.Replace(encoded(t, pod))), again); err != nil {
			t.Fatal(err)
		}
		return again
	}
	run := func(u inplace.Update, p inplace.Policy) (string, *corev1.Pod) {
		var said strings.Builder
		for range 20 {
			a, err := inplace.Next(u, p, noon())
			if err != nil {
				return said.String() + names.Replace(err.Error()), u.Pod
			}
			said.WriteString(string(a.Verdict) + a.After.String())
			for _, n := range a.Notes {
				said.WriteString(n.Code + names.Replace(n.Text))
			}
			if a.Verdict != inplace.Write {
				break
			}
			if u.Pod, _, err = apply(u.Pod, a.Write); err != nil || u.Pod == nil {
				break
			}
		}
		return said.String(), u.Pod
	}
	written := 0
	for range 1_000 / fewer() {
		pod := oddPod(t, r)
		change := oddChange(r, pod)
		delete(change.Metadata.Annotations, kruise.InPlaceUpdateGraceKey) // its own name is not renamed in a grace period
		p := inplace.Policy{
			Unready:        oneOf(r, inplace.UnreadyOnRestart, inplace.UnreadyAlways),
			Relabel:        oneOf(r, inplace.RelabelFirst, inplace.RelabelLast, inplace.RelabelDone),
			RecordRestarts: true,
		}
		grace := oneOf(r, int32(0), 7)
		want, plain := run(inplace.Update{Pod: pod, Change: change, Revision: "r", GraceSeconds: grace}, p)
		p.Keys = own
		got, after := run(inplace.Update{Pod: renamed(pod), Change: change, Revision: "r", GraceSeconds: grace}, p)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("under own keys (-want +got):\n%s", diff)
		}
		if plain == nil {
			continue
		}
		written++
		if want, got := names.Replace(encoded(t, plain)), encoded(t, after); want != got &&
			encoded(t, renamed(plain)) != got {
			t.Fatalf("the pod under own keys (-want +got):\n%s", cmp.Diff(want, got))
		}
	}
	if written == 0 {
		t.Error("no pod was written")
	}
}

// forked is a pod that a fork of OpenKruise's code updates in place, in the same formats under names of its own: web:1
// became web:2, and the kubelet has not started it.
func forked() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-0", UID: "1", ResourceVersion: "7",
			Labels: map[string]string{"fork.example.com/revision": "web-2"},
			Annotations: map[string]string{"fork.example.com/inplace-update-state": `{"revision":"web-2",` +
				`"updateTimestamp":"2026-11-21T11:59:59Z","lastContainerStatuses":{"web":{"imageID":"sha256:1"}}}`},
		},
		Spec: corev1.PodSpec{
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "ForkUpdateReady"}},
			Containers:     []corev1.Container{{Name: "web", Image: "web:2"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: "ForkUpdateReady", Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionFalse},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "web", ImageID: "sha256:1", Image: "web:1", Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
}

func takingOver() inplace.Policy {
	keys := ownKeys()
	keys.Older = []kruise.Keys{{
		InPlaceState: "fork.example.com/inplace-update-state", InPlaceGrace: "fork.example.com/inplace-update-grace",
		InPlaceReady: "ForkUpdateReady", Revision: "fork.example.com/revision",
	}}
	return inplace.Policy{Keys: keys}
}

// TestTakeoverOfAFork takes a pod over in mid-update: it gets its traffic back when its image runs, not before.
func TestTakeoverOfAFork(t *testing.T) {
	p, pod := takingOver(), forked()
	next := func(u inplace.Update) inplace.Action {
		t.Helper()
		u.Pod = pod
		a, err := inplace.Next(u, p, noon())
		if err != nil {
			t.Fatal(err)
		}
		if a.Verdict == inplace.Write {
			after, refused, err := apply(pod, a.Write)
			if refused != nil || err != nil {
				t.Fatal(refused, err)
			}
			pod = after
		}
		return a
	}
	if a := next(inplace.Update{}); a.Verdict != inplace.Wait || a.Notes[0].Code != inplace.NoteImage {
		t.Fatalf("while the old image runs: %+v, want to wait for it", a)
	}
	if without, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon()); err != nil ||
		without.Verdict == inplace.Wait {
		t.Fatalf("without the keys of the fork: %+v, %v; the test shows nothing", without, err)
	}
	if inplace.RevisionOf(pod, p) != "web-2" {
		t.Errorf("revision %q, want web-2", inplace.RevisionOf(pod, p))
	}

	pod.Status.ContainerStatuses[0].ImageID, pod.Status.ContainerStatuses[0].Image = "sha256:2", "web:2"
	if a := next(inplace.Update{}); a.Verdict != inplace.Write || a.Write.Subresource != "status" {
		t.Fatalf("when the image runs: %+v, want its gate opened", a)
	}
	if c := pod.Status.Conditions[0]; c.Type != "ForkUpdateReady" || c.Status != corev1.ConditionTrue {
		t.Errorf("the gate that the pod has: %+v", c)
	}
	if a := next(inplace.Update{}); a.Verdict != inplace.Complete {
		t.Fatalf("then: %+v, want it complete", a)
	}

	// The next update has the names of its own.
	u := inplace.Update{Revision: "web-3", Change: &inplace.Change{Images: map[string]string{"web": "web:3"}}}
	for next(u).Verdict == inplace.Write {
	}
	want := map[string]string{"own.example.com/revision": "web-3"}
	if diff := cmp.Diff(want, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	keys := slices.Sorted(maps.Keys(pod.Annotations))
	if diff := cmp.Diff([]string{"own.example.com/state"}, keys); diff != "" {
		t.Errorf("annotations (-want +got), the state under its own key alone:\n%s", diff)
	}
}

// TestTakeoverInGrace takes over a pod whose change waits for the end of a grace period.
func TestTakeoverInGrace(t *testing.T) {
	p, pod := takingOver(), forked()
	pod.Spec.Containers[0].Image = "web:1"
	pod.Annotations["fork.example.com/inplace-update-grace"] = `{"revision":"web-2","containerImages":{"web":"web:2"},"graceSeconds":30}`
	a, err := inplace.Next(inplace.Update{Pod: pod}, p, noon())
	if err != nil || a.Verdict != inplace.Wait || a.Notes[0].Code != inplace.NoteGrace {
		t.Fatalf("in the grace period: %+v, %v", a, err)
	}
	a, err = inplace.Next(inplace.Update{Pod: pod}, p, noon().Add(time.Minute))
	if err != nil || a.Verdict != inplace.Write {
		t.Fatalf("after it: %+v, %v", a, err)
	}
	after, refused, err := apply(pod, a.Write)
	if refused != nil || err != nil {
		t.Fatal(refused, err)
	}
	if after.Spec.Containers[0].Image != "web:2" || len(after.Annotations) != 1 {
		t.Errorf("image %s, annotations %v", after.Spec.Containers[0].Image, after.Annotations)
	}
}

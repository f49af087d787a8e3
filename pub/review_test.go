package pub_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/pub"
)

func protect(operations ...pub.Operation) func(*object) {
	return func(b *object) { b.Spec.ProtectOperations = operations }
}

func ignoring(key, value string) func(*object) {
	return func(b *object) {
		b.Spec.IgnoredPodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func unsynced(b *object) { b.Generation = 2 }

// halfUpdated is a pod whose update in place has not finished.
func halfUpdated(pod *corev1.Pod) {
	annotation(kruise.InPlaceUpdateStateKey,
		`{"revision":"r","lastContainerStatuses":{"main":{"imageID":"web@sha256:1"}}}`)(pod)
	image("web:2")(pod)
}

func TestReview(t *testing.T) {
	cases := map[string]struct {
		why       string
		budget    pub.Budget
		pod       *corev1.Pod
		operation pub.Operation
		resizes   bool
		want      pub.Reason
	}{
		"13: update": {
			why:       "the budget has room",
			budget:    newBudget(with(1, 9)),
			pod:       newPod("a"),
			operation: pub.Update,
			want:      pub.Spent,
		},
		"14: not ready": {
			why:       "the pod is unavailable already",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a", unready),
			operation: pub.Update,
			want:      pub.PodUnavailable,
		},
		"15: metadata": {
			why:       "the update has no effect",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a"),
			operation: pub.Harmless,
			want:      pub.NoEffect,
		},
		"16: recorded as updated": {
			why:       "nothing is spent twice",
			budget:    newBudget(with(0, 9), recorded(nil, records(0, 1, 0))),
			pod:       newPod("web-0"),
			operation: pub.Update,
			want:      pub.AlreadyRecorded,
		},
		"16: recorded as disrupted": {
			why:       "nothing is spent twice",
			budget:    newBudget(with(0, 9), recorded(records(0, 1, 0), nil)),
			pod:       newPod("web-0"),
			operation: pub.Evict,
			want:      pub.AlreadyRecorded,
		},
		"recorded, and about to end": {
			why:       "the record may end before the controller observes the deletion",
			budget:    newBudget(with(0, 9), recorded(records(0, 1, -11), nil)),
			pod:       newPod("web-0"),
			operation: pub.Evict,
			want:      pub.Exhausted,
		},
		"recorded as updated, and about to end": {
			why:       "the same",
			budget:    newBudget(with(0, 9), recorded(nil, records(0, 1, -6))),
			pod:       newPod("web-0"),
			operation: pub.Update,
			want:      pub.Exhausted,
		},
		"recorded as updated, and updated": {
			why:       "the update is over, and this is another disruption",
			budget:    newBudget(with(1, 9), recorded(nil, records(0, 1, -3))),
			pod:       newPod("web-0", updatedInPlace(-3, -1)),
			operation: pub.Evict,
			want:      pub.Spent,
		},
		"17: eviction": {
			why:       "no room is left",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a"),
			operation: pub.Evict,
			want:      pub.Exhausted,
		},
		"17: nothing desired": {
			why:       "no pod has to be available",
			budget:    newBudget(with(0, 0)),
			pod:       newPod("a"),
			operation: pub.Evict,
			want:      pub.NothingDesired,
		},
		"18: exempt": {
			why:       "the user exempts the pod",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a", annotation(kruise.PodPubNoProtectionKey, "true")),
			operation: pub.Evict,
			want:      pub.PodExempt,
		},
		"18: exempt by another word": {
			why:       "only what Go parses as true exempts",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a", annotation(kruise.PodPubNoProtectionKey, "yes")),
			operation: pub.Evict,
			want:      pub.Exhausted,
		},
		"18: ignored": {
			why:       "the budget ignores the pod",
			budget:    newBudget(with(0, 9), ignoring("debug", "1")),
			pod:       newPod("a", label("debug", "1")),
			operation: pub.Evict,
			want:      pub.PodIgnored,
		},
		"19: only DELETE protected, update": {
			why:       "updates are free",
			budget:    newBudget(with(0, 9), protect(pub.Delete)),
			pod:       newPod("a"),
			operation: pub.Update,
			want:      pub.OperationUnprotected,
		},
		"19: only UPDATE protected, delete": {
			why:       "deletions are free",
			budget:    newBudget(with(0, 9), protect(pub.Update)),
			pod:       newPod("a"),
			operation: pub.Delete,
			want:      pub.OperationUnprotected,
		},
		"19: by annotation": {
			why:       "users write spaces after commas",
			budget:    newBudget(with(0, 9), annotated("kruise.io/pub-protect-operations", "DELETE, EVICT")),
			pod:       newPod("a"),
			operation: pub.Evict,
			want:      pub.Exhausted,
		},
		"20: resize by default, an own operation": {
			why:       "not protected unless listed",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a"),
			operation: pub.Resize,
			resizes:   true,
			want:      pub.OperationUnprotected,
		},
		"20: resize by default, taken for updates": {
			why:       "protected with UPDATE",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a"),
			operation: pub.Resize,
			want:      pub.Exhausted,
		},
		"20: resize listed, an own operation": {
			why:       "protected",
			budget:    newBudget(with(0, 9), protect(pub.Resize)),
			pod:       newPod("a"),
			operation: pub.Resize,
			resizes:   true,
			want:      pub.Exhausted,
		},
		"not synced": {
			why:       "the status is of another spec",
			budget:    newBudget(with(0, 0), unsynced),
			pod:       newPod("a"),
			operation: pub.Evict,
			want:      pub.Unsynced,
		},
		"not synced, unavailable": {
			why:       "no status is needed for this",
			budget:    newBudget(with(0, 0), unsynced),
			pod:       newPod("a", unready),
			operation: pub.Evict,
			want:      pub.PodUnavailable,
		},
		"2000 records": {
			why:       "the status can hold one more",
			budget:    newBudget(with(1, 9), recorded(records(0, 1500, 0), records(1500, 2000, 0))),
			pod:       newPod("a"),
			operation: pub.Delete,
			want:      pub.Spent,
		},
		"2001 records": {
			why:       "the status cannot hold more",
			budget:    newBudget(with(1, 9), recorded(records(0, 1500, 0), records(1500, 2001, 0))),
			pod:       newPod("a"),
			operation: pub.Delete,
			want:      pub.TooManyRecords,
		},
		"an operation that this package has no": {
			why:       "unknown operations are not protected",
			budget:    newBudget(with(0, 9)),
			pod:       newPod("a"),
			operation: "DRAIN",
			want:      pub.OperationUnprotected,
		},
		"an ignored selector that cannot be read": {
			why:       "it ignores no pod",
			budget:    newBudget(with(0, 9), func(b *object) { b.Spec.IgnoredPodSelector = &metav1.LabelSelector{} }),
			pod:       newPod("a"),
			operation: pub.Evict,
			want:      pub.Exhausted,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := pub.Disruption{Pod: c.pod, Operation: c.operation, Policy: pub.Policy{Resizes: c.resizes}}
			v := pub.Review(c.budget, d, at(0))
			if v.Reason != c.want {
				t.Fatalf("%s: %s, want %s", c.why, v.Reason, c.want)
			}
			refused := c.want == pub.Exhausted || c.want == pub.TooManyRecords || c.want == pub.Unsynced
			if v.Allowed == refused || (v.Text != "") != refused || (v.Record != nil) != (c.want == pub.Spent) {
				t.Errorf("%s: the verdict is %+v", c.why, v)
			}
		})
	}
}

// TestReviewExempt: an exempt user is never refused, and takes from the budget what it has.
func TestReviewExempt(t *testing.T) {
	const scheduler = "system:kube-scheduler"
	for name, c := range map[string]struct {
		why      string
		budget   pub.Budget
		user     string
		want     pub.Reason
		recorded bool
		left     int32
	}{
		"room": {
			why:      "the disruption is like any other",
			budget:   newBudget(with(2, 9)),
			user:     scheduler,
			want:     pub.Spent,
			recorded: true,
			left:     1,
		},
		"no room": {
			why:      "the disruption is recorded, and no room is left",
			budget:   newBudget(with(0, 9)),
			user:     scheduler,
			want:     pub.UserExempt,
			recorded: true,
		},
		"not synced": {
			why:      "the user does not wait for a status",
			budget:   newBudget(with(1, 9), unsynced),
			user:     scheduler,
			want:     pub.UserExempt,
			recorded: true,
		},
		"nothing desired": {
			why:    "nothing is spent where no pod has to be available",
			budget: newBudget(with(0, 0)),
			user:   scheduler,
			want:   pub.NothingDesired,
		},
		"recorded": {
			why:    "nothing is spent twice",
			budget: newBudget(with(0, 9), recorded(records(0, 1, 0), nil)),
			user:   scheduler,
			want:   pub.AlreadyRecorded,
		},
		"2001 records": {
			why:    "a status does not grow without end",
			budget: newBudget(with(1, 9), recorded(records(10, 2011, 0), nil)),
			user:   scheduler,
			want:   pub.UserExempt,
			left:   1,
		},
		"another user": {
			why:    "only the users of the list are exempt",
			budget: newBudget(with(0, 9)),
			user:   "system:kube-scheduler-2",
			want:   pub.Exhausted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := pub.Disruption{
				Pod: newPod("web-0"), Operation: pub.Delete, User: c.user, Policy: pub.Policy{ExemptUsers: pub.SystemUsers()},
			}
			v := pub.Review(c.budget, d, at(0))
			if v.Reason != c.want || v.Allowed != (c.want != pub.Exhausted) || v.Allowed == (v.Text != "") ||
				(v.Record != nil) != c.recorded {
				t.Fatalf("%s: %+v", c.why, v)
			}
			after := c.budget
			if v.Record != nil {
				after = c.budget.Spend(*v.Record)
			}
			if after.Status.UnavailableAllowed != c.left || c.recorded && !has(after, "web-0") {
				t.Errorf("%s: status %+v", c.why, after.Status)
			}
			d.Policy.ExemptUsers = nil
			if v := pub.Review(c.budget, d, at(0)); v.Reason == pub.UserExempt {
				t.Errorf("without a list nobody is exempt: %+v", v)
			}
		})
	}
}

// TestSystemUsers: the list has no user that stands for a tenant's choice.
func TestSystemUsers(t *testing.T) {
	for _, user := range []string{
		"", "admin", "kruise-manager", "system:kube-controller-manager", "system:node:a",
		"system:serviceaccount:kube-system:replicaset-controller",
		"system:serviceaccount:kube-system:statefulset-controller", "system:serviceaccount:shop:node-controller",
	} {
		if (pub.Policy{ExemptUsers: pub.SystemUsers()}).Exempts(user) {
			t.Errorf("user %q is exempt", user)
		}
	}
}

func TestSpend(t *testing.T) {
	cases := map[string]struct {
		why       string
		operation pub.Operation
		updated   bool
	}{
		"deletion": {"until the pod terminates", pub.Delete, false},
		"eviction": {"until the pod terminates", pub.Evict, false},
		"update":   {"until the pod is updated", pub.Update, true},
		"resize":   {"no deletion follows from a resize", pub.Resize, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := newObject("web", with(2, 3), recorded(records(0, 1, -5), records(1, 2, -5)))
			budget, kept := read(before), before.DeepCopy()
			v := pub.Review(budget, pub.Disruption{Pod: newPod("a"), Operation: c.operation}, at(7))
			after := budget.Spend(*v.Record)
			want := kept.DeepCopy().Status
			want.UnavailableAllowed = 1
			if c.updated {
				want.UnavailablePods["a"] = stamp(7)
			} else {
				want.DisruptedPods["a"] = stamp(7)
			}
			if diff := cmp.Diff(want, after.Status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(kept, before); diff != "" {
				t.Errorf("the stored budget changed (-before +after):\n%s", diff)
			}
			if again := pub.Review(after,
				pub.Disruption{Pod: newPod("a"), Operation: pub.Delete}, at(8)); again.Reason != pub.AlreadyRecorded {
				t.Errorf("the second review of the pod is %+v", again)
			}
		})
	}
	t.Run("several at once into an empty status", func(t *testing.T) {
		after := newBudget(with(2, 3)).Spend(pub.Record{Pod: "a", Time: stamp(0)}, pub.Record{
			Pod: "b", Updated: true, Time: stamp(0),
		})
		if after.Status.UnavailableAllowed != 0 || !has(after, "a") || !has(after, "b") {
			t.Errorf("the status is %+v", after.Status)
		}
	})
}

func TestTextOfARefusal(t *testing.T) {
	v := pub.Review(newBudget(with(0, 1)), pub.Disruption{Pod: newPod("a"), Operation: pub.Delete}, at(0))
	if want := "pub unavailable allowed is negative"; v.Text != want {
		t.Errorf("the text is %q, want %q", v.Text, want)
	}
	v = pub.Review(newBudget(with(1, 1), recorded(records(0, 2001, 0), nil)),
		pub.Disruption{Pod: newPod("a"), Operation: pub.Delete}, at(0))
	if want := "maps too big"; !strings.Contains(v.Text, want) {
		t.Errorf("the text is %q, want %q in it", v.Text, want)
	}
}

// has reports whether a disruption of a pod is recorded.
func has(b pub.Budget, pod string) bool {
	_, disrupted := b.Status.DisruptedPods[pod]
	_, updated := b.Status.UnavailablePods[pod]
	return disrupted || updated
}

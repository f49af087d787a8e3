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
	annotation(kruise.InPlaceUpdateStateKey, `{"revision":"r","lastContainerStatuses":{"main":{"imageID":"web@sha256:1"}}}`)(pod)
	image("web:2")(pod)
}

func TestReview(t *testing.T) {
	resizes := pub.Policy{Resizes: true}
	cases := map[string]struct {
		why       string
		budget    pub.Budget
		pod       *corev1.Pod
		operation pub.Operation
		policy    pub.Policy
		want      pub.Reason
	}{
		"13: update":                                {"the budget has room", newBudget(with(1, 9)), newPod("a"), pub.Update, pub.Policy{}, pub.Spent},
		"13: the next one":                          {"no room is left", newBudget(with(0, 9), recorded(nil, records(0, 1, 0))), newPod("a"), pub.Update, pub.Policy{}, pub.Exhausted},
		"14: not ready":                             {"the pod is unavailable already", newBudget(with(0, 9)), newPod("a", unready), pub.Update, pub.Policy{}, pub.PodUnavailable},
		"14: terminating":                           {"the same", newBudget(with(0, 9)), newPod("a", terminating), pub.Delete, pub.Policy{}, pub.PodUnavailable},
		"14: with an unavailable label":             {"the same", newBudget(with(0, 9)), newPod("a", label("unavailable-pod.kruise.io/x", "")), pub.Delete, pub.Policy{}, pub.PodUnavailable},
		"14: being updated":                         {"the same", newBudget(with(0, 9)), newPod("a", halfUpdated), pub.Delete, pub.Policy{}, pub.PodUnavailable},
		"15: metadata":                              {"the update has no effect", newBudget(with(0, 9)), newPod("a"), pub.Harmless, pub.Policy{}, pub.NoEffect},
		"16: recorded as updated":                   {"nothing is spent twice", newBudget(with(0, 9), recorded(nil, records(0, 1, 0))), newPod("web-0"), pub.Update, pub.Policy{}, pub.AlreadyRecorded},
		"16: recorded as disrupted":                 {"nothing is spent twice", newBudget(with(0, 9), recorded(records(0, 1, 0), nil)), newPod("web-0"), pub.Evict, pub.Policy{}, pub.AlreadyRecorded},
		"recorded, and about to end":                {"the record may end before the controller observes the deletion", newBudget(with(0, 9), recorded(records(0, 1, -11), nil)), newPod("web-0"), pub.Evict, pub.Policy{}, pub.Exhausted},
		"recorded as updated, and about to end":     {"the same", newBudget(with(0, 9), recorded(nil, records(0, 1, -6))), newPod("web-0"), pub.Update, pub.Policy{}, pub.Exhausted},
		"recorded as updated, and updated":          {"the update is over, and this is another disruption", newBudget(with(1, 9), recorded(nil, records(0, 1, -3))), newPod("web-0", updatedInPlace(-3, -1)), pub.Evict, pub.Policy{}, pub.Spent},
		"17: eviction":                              {"no room is left", newBudget(with(0, 9)), newPod("a"), pub.Evict, pub.Policy{}, pub.Exhausted},
		"17: nothing desired":                       {"no pod has to be available", newBudget(with(0, 0)), newPod("a"), pub.Evict, pub.Policy{}, pub.NothingDesired},
		"18: exempt":                                {"the user exempts the pod", newBudget(with(0, 9)), newPod("a", annotation(kruise.PodPubNoProtectionKey, "true")), pub.Evict, pub.Policy{}, pub.PodExempt},
		"18: exempt by another word":                {"only what Go parses as true exempts", newBudget(with(0, 9)), newPod("a", annotation(kruise.PodPubNoProtectionKey, "yes")), pub.Evict, pub.Policy{}, pub.Exhausted},
		"18: ignored":                               {"the budget ignores the pod", newBudget(with(0, 9), ignoring("debug", "1")), newPod("a", label("debug", "1")), pub.Evict, pub.Policy{}, pub.PodIgnored},
		"18: not ignored":                           {"the budget ignores other pods", newBudget(with(0, 9), ignoring("debug", "1")), newPod("a"), pub.Evict, pub.Policy{}, pub.Exhausted},
		"19: only DELETE protected, update":         {"updates are free", newBudget(with(0, 9), protect(pub.Delete)), newPod("a"), pub.Update, pub.Policy{}, pub.OperationUnprotected},
		"19: only UPDATE protected, delete":         {"deletions are free", newBudget(with(0, 9), protect(pub.Update)), newPod("a"), pub.Delete, pub.Policy{}, pub.OperationUnprotected},
		"19: RESIZE and DELETE protected, update":   {"updates are free", newBudget(with(0, 9), protect(pub.Resize, pub.Delete)), newPod("a"), pub.Update, pub.Policy{}, pub.OperationUnprotected},
		"19: by annotation":                         {"users write spaces after commas", newBudget(with(0, 9), annotated("kruise.io/pub-protect-operations", "DELETE, EVICT")), newPod("a"), pub.Evict, pub.Policy{}, pub.Exhausted},
		"20: resize by default, an own operation":   {"not protected unless listed", newBudget(with(0, 9)), newPod("a"), pub.Resize, resizes, pub.OperationUnprotected},
		"20: resize by default, taken for updates":  {"protected with UPDATE", newBudget(with(0, 9)), newPod("a"), pub.Resize, pub.Policy{}, pub.Exhausted},
		"20: resize listed, an own operation":       {"protected", newBudget(with(0, 9), protect(pub.Resize)), newPod("a"), pub.Resize, resizes, pub.Exhausted},
		"20: resize where only EVICT is listed":     {"never protected", newBudget(with(0, 9), protect(pub.Evict)), newPod("a"), pub.Resize, pub.Policy{}, pub.OperationUnprotected},
		"not synced":                                {"the status is of another spec", newBudget(with(0, 0), unsynced), newPod("a"), pub.Evict, pub.Policy{}, pub.Unsynced},
		"not synced, unavailable":                   {"no status is needed for this", newBudget(with(0, 0), unsynced), newPod("a", unready), pub.Evict, pub.Policy{}, pub.PodUnavailable},
		"not synced, unprotected":                   {"no status is needed for this", newBudget(with(0, 0), unsynced, protect(pub.Evict)), newPod("a"), pub.Delete, pub.Policy{}, pub.OperationUnprotected},
		"2000 records":                              {"the status can hold one more", newBudget(with(1, 9), recorded(records(0, 1500, 0), records(1500, 2000, 0))), newPod("a"), pub.Delete, pub.Policy{}, pub.Spent},
		"2001 records":                              {"the status cannot hold more", newBudget(with(1, 9), recorded(records(0, 1500, 0), records(1500, 2001, 0))), newPod("a"), pub.Delete, pub.Policy{}, pub.TooManyRecords},
		"an operation that this package has no":     {"unknown operations are not protected", newBudget(with(0, 9)), newPod("a"), "DRAIN", pub.Policy{}, pub.OperationUnprotected},
		"an ignored selector that cannot be read":   {"it ignores no pod", newBudget(with(0, 9), func(b *object) { b.Spec.IgnoredPodSelector = &metav1.LabelSelector{} }), newPod("a"), pub.Evict, pub.Policy{}, pub.Exhausted},
		"operations none of which this package has": {"the default protects", newBudget(with(0, 9), protect("DRAIN")), newPod("a"), pub.Evict, pub.Policy{}, pub.Exhausted},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := pub.Review(c.budget, pub.Disruption{Pod: c.pod, Operation: c.operation, Policy: c.policy}, at(0))
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
		"room":            {why: "the disruption is like any other", budget: newBudget(with(2, 9)), user: scheduler, want: pub.Spent, recorded: true, left: 1},
		"no room":         {why: "the disruption is recorded, and no room is left", budget: newBudget(with(0, 9)), user: scheduler, want: pub.UserExempt, recorded: true},
		"not synced":      {why: "the user does not wait for a status", budget: newBudget(with(1, 9), unsynced), user: scheduler, want: pub.UserExempt, recorded: true},
		"nothing desired": {why: "nothing is spent where no pod has to be available", budget: newBudget(with(0, 0)), user: scheduler, want: pub.NothingDesired},
		"recorded":        {why: "nothing is spent twice", budget: newBudget(with(0, 9), recorded(records(0, 1, 0), nil)), user: scheduler, want: pub.AlreadyRecorded},
		"2001 records": {
			why: "a status does not grow without end", budget: newBudget(with(1, 9), recorded(records(10, 2011, 0), nil)), user: scheduler, want: pub.UserExempt, left: 1,
		},
		"2001 records and no room": {
			why: "the same", budget: newBudget(with(0, 9), recorded(records(10, 2011, 0), nil)), user: scheduler, want: pub.UserExempt,
		},
		"another user": {why: "only the users of the list are exempt", budget: newBudget(with(0, 9)), user: "system:kube-scheduler-2", want: pub.Exhausted},
		"no user":      {why: "nobody is not exempt", budget: newBudget(with(0, 9)), want: pub.Exhausted},
	} {
		t.Run(name, func(t *testing.T) {
			d := pub.Disruption{Pod: newPod("web-0"), Operation: pub.Delete, User: c.user, Policy: pub.Policy{ExemptUsers: pub.SystemUsers()}}
			v := pub.Review(c.budget, d, at(0))
			if v.Reason != c.want || v.Allowed != (c.want != pub.Exhausted) || v.Allowed == (v.Text != "") || (v.Record != nil) != c.recorded {
				t.Fatalf("%s: %+v", c.why, v)
			}
			after := c.budget
			if v.Record != nil {
				after = c.budget.Spend(*v.Record)
			}
			if after.Status.UnavailableAllowed != c.left || c.recorded && !after.Recorded("web-0") {
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
		"", "admin", "kruise-manager", "system:kube-controller-manager", "system:node:a", "system:serviceaccount:kube-system:replicaset-controller",
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
			if again := pub.Review(after, pub.Disruption{Pod: newPod("a"), Operation: pub.Delete}, at(8)); again.Reason != pub.AlreadyRecorded {
				t.Errorf("the second review of the pod is %+v", again)
			}
		})
	}
	t.Run("several at once into an empty status", func(t *testing.T) {
		after := newBudget(with(2, 3)).Spend(pub.Record{Pod: "a", Time: stamp(0)}, pub.Record{Pod: "b", Updated: true, Time: stamp(0)})
		if after.Status.UnavailableAllowed != 0 || !after.Recorded("a") || !after.Recorded("b") {
			t.Errorf("the status is %+v", after.Status)
		}
	})
}

func TestTextOfARefusal(t *testing.T) {
	v := pub.Review(newBudget(with(0, 1)), pub.Disruption{Pod: newPod("a"), Operation: pub.Delete}, at(0))
	if want := "pub unavailable allowed is negative"; v.Text != want {
		t.Errorf("the text is %q, want %q", v.Text, want)
	}
	v = pub.Review(newBudget(with(1, 1), recorded(records(0, 2001, 0), nil)), pub.Disruption{Pod: newPod("a"), Operation: pub.Delete}, at(0))
	if want := "maps too big"; !strings.Contains(v.Text, want) {
		t.Errorf("the text is %q, want %q in it", v.Text, want)
	}
}

func TestAvailable(t *testing.T) {
	digest := func(id string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Image, pod.Status.ContainerStatuses[0].ImageID = "reg.io/web@sha256:aa", id
		}
	}
	sidecar := func(state, current string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			annotation(kruise.SidecarSetInjectedListKey, "log,mesh")(pod)
			if state != "" {
				annotation(kruise.SidecarSetInPlaceUpdateStateKey, state)(pod)
			}
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: "proxy", Image: "proxy:2", Env: []corev1.EnvVar{{Name: kruise.SidecarInjectedEnvName, Value: "true"}},
			})
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", Image: current, ImageID: "id-of-" + current})
		}
	}
	state := `{"mesh":{"revision":"2","lastContainerStatuses":{"proxy":{"imageID":"id-of-proxy:1"}}}}`
	resizing := func(pod *corev1.Pod) {
		annotation(kruise.InPlaceUpdateStateKey, `{"revision":"r","updateResources":true,"containerBatchesRecord":[{"timestamp":"2026-11-22T12:00:00Z","containers":["main"]}]}`)(pod)
		pod.Spec.Containers[0].Resources = requests("cpu", "2")
		pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{}
	}
	withResize := pub.Policy{}
	withResize.Installed.Resize = true
	cases := map[string]struct {
		why    string
		pod    *corev1.Pod
		policy pub.Policy
		want   bool
	}{
		"ready":                         {"all is as it has to be", newPod("a"), pub.Policy{}, true},
		"not ready":                     {"the condition is False", newPod("a", unready), pub.Policy{}, false},
		"no condition":                  {"a new pod is not ready", newPod("a", func(p *corev1.Pod) { p.Status.Conditions = nil }), pub.Policy{}, false},
		"pending":                       {"only running pods are", newPod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), pub.Policy{}, false},
		"terminating":                   {"the pod is about to stop", newPod("a", terminating), pub.Policy{}, false},
		"labelled":                      {"the user marks the pod", newPod("a", label("unavailable-pod.kruise.io/x", "false")), pub.Policy{}, false},
		"digest":                        {"the image runs", newPod("a", digest("docker-pullable://reg.io/web@sha256:aa")), pub.Policy{}, true},
		"another digest":                {"the old image runs", newPod("a", digest("reg.io/web@sha256:bb")), pub.Policy{}, false},
		"another repository":            {"the same digest elsewhere is another image", newPod("a", digest("reg.io/other@sha256:aa")), pub.Policy{}, false},
		"digest without a status":       {"nothing runs yet", newPod("a", digest(""), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }), pub.Policy{}, false},
		"digests end the question":      {"annotations are not asked where all images are digests", newPod("a", digest("reg.io/web@sha256:aa"), annotation(kruise.InPlaceUpdateGraceKey, "{}")), pub.Policy{}, true},
		"grace":                         {"the update has begun", newPod("a", annotation(kruise.InPlaceUpdateGraceKey, "{}")), pub.Policy{}, false},
		"grace, older key":              {"the update has begun", newPod("a", annotation(kruise.InPlaceUpdateGraceKeyOld, "{}")), pub.Policy{}, false},
		"an unreadable state":           {"it is not known to be done", newPod("a", annotation(kruise.InPlaceUpdateStateKey, "{")), pub.Policy{}, false},
		"a later batch":                 {"images are left", newPod("a", annotation(kruise.InPlaceUpdateStateKey, `{"nextContainerImages":{"main":"web:2"}}`)), pub.Policy{}, false},
		"being updated":                 {"the old image runs", newPod("a", halfUpdated), pub.Policy{}, false},
		"sidecar, never updated":        {"no state is a finished one", newPod("a", sidecar("", "proxy:1")), pub.Policy{}, true},
		"sidecar, being updated":        {"the old image runs", newPod("a", sidecar(state, "proxy:1")), pub.Policy{}, false},
		"sidecar, updated":              {"the new image runs", newPod("a", sidecar(state, "proxy:2")), pub.Policy{}, true},
		"sidecar, unreadable":           {"it is not known to be done", newPod("a", sidecar("{", "proxy:2")), pub.Policy{}, false},
		"sidecar, of another set":       {"sets that did not inject do not count", newPod("a", sidecar(strings.Replace(state, "mesh", "other", 1), "proxy:1")), pub.Policy{}, true},
		"resizing, not looked at":       {"without resizes in place nodes report none", newPod("a", resizing), pub.Policy{}, true},
		"resizing":                      {"the node has not resized the container yet", newPod("a", resizing), withResize, false},
		"an image without a tag":        {"no tag is latest", newPod("a", image("web")), pub.Policy{}, true},
		"an old state and a new reason": {"a finished update stays finished", newPod("a", annotation(kruise.InPlaceUpdateStateKey, `{"lastContainerStatuses":{"main":{"imageID":"web@sha256:0"}}}`)), pub.Policy{}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pub.Available(c.pod, c.policy); got != c.want {
				t.Errorf("%s: available is %v", c.why, got)
			}
		})
	}
}

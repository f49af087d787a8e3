package imagepull_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

func clusterNode(change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: *ago(time.Hour)},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func inZone(n *v1beta1.NodeImage)  { n.Labels = map[string]string{"zone": "a"} }
func fake(n *v1beta1.NodeImage)    { n.Labels = map[string]string{v1beta1.NodeImageFakeKey: "x"} }
func leaving(n *v1beta1.NodeImage) { n.DeletionTimestamp = ago(0) }
func terminating(n *corev1.Node)   { n.DeletionTimestamp = ago(0) }
func readyFor(d time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Conditions[1].LastTransitionTime = *ago(d) }
}

// A NodeImage comes and goes with its node.
func TestMaintainExistence(t *testing.T) {
	created := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}}
	for name, test := range map[string]struct {
		node  *corev1.Node
		image *v1beta1.NodeImage
		want  imagepull.UpkeepPlan
		notes string
	}{
		"neither":         {nil, nil, imagepull.UpkeepPlan{}, ""},
		"a leaving node":  {clusterNode(terminating), nil, imagepull.UpkeepPlan{}, ""},
		"a node":          {clusterNode(), nil, imagepull.UpkeepPlan{Create: created}, ""},
		"just long ready": {clusterNode(readyFor(30 * time.Second)), nil, imagepull.UpkeepPlan{Create: created}, ""},
		"not long ready": {
			node:  clusterNode(readyFor(20 * time.Second)),
			want:  imagepull.UpkeepPlan{RequeueAfter: 10 * time.Second},
			notes: "NodeNotReady n1",
		},
		"soon long ready": {
			node:  clusterNode(readyFor(29 * time.Second)),
			want:  imagepull.UpkeepPlan{RequeueAfter: 3*time.Second + 7*time.Millisecond},
			notes: "NodeNotReady n1",
		},
		"not ready": {
			node:  clusterNode(func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }),
			want:  imagepull.UpkeepPlan{},
			notes: "NodeNotReady n1",
		},
		"a virtual node": {
			node: clusterNode(func(n *corev1.Node) { n.Labels["type"] = "virtual-kubelet" }), want: imagepull.UpkeepPlan{},
		},
		"both":            {clusterNode(), nodeImage("n1", inZone), imagepull.UpkeepPlan{}, ""},
		"no node":         {nil, nodeImage("n1"), imagepull.UpkeepPlan{Delete: true}, ""},
		"the node leaves": {clusterNode(terminating), nodeImage("n1"), imagepull.UpkeepPlan{Delete: true}, ""},
		"it leaves first": {clusterNode(), nodeImage("n1", leaving), imagepull.UpkeepPlan{}, ""},
		"a fake":          {nil, nodeImage("n1", fake), imagepull.UpkeepPlan{}, ""},
		"other labels":    {clusterNode(), nodeImage("n1"), imagepull.UpkeepPlan{Update: nodeImage("n1", inZone)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := imagepull.Maintain(imagepull.Upkeep{Node: test.node, Image: test.image, Now: noon(), Random: 2007})
			notes := codes(got.Notes)
			got.Notes = nil
			if diff := cmp.Diff(test.want, got); diff != "" || notes != test.notes {
				t.Errorf("plan (-want +got):\n%s\nnotes %q", diff, notes)
			}
		})
	}
}

// TestMaintainSpec tells what stays of what was asked for.
func TestMaintainSpec(t *testing.T) {
	ours := func(change func(*corev1.ObjectReference)) func(*v1beta1.NodeImage) {
		return edit("nginx", func(s *v1beta1.ImageTagSpec) { change(&s.OwnerReferences[0]) })
	}
	stale := func(seconds int32) func(*v1beta1.NodeImage) {
		return edit("nginx", func(s *v1beta1.ImageTagSpec) { s.PullPolicy.TTLSecondsAfterFinished = &seconds })
	}
	done := did("nginx:1", 0, succeeded)
	batch := secretsOf("nginx", v1beta1.ReferenceObject{Name: "gone"},
		v1beta1.ReferenceObject{Name: "gone", Mode: "batch"}, v1beta1.ReferenceObject{Name: "here"})
	for name, test := range map[string]struct {
		change []func(*v1beta1.NodeImage)
		want   string // nginx:tag/owners/secrets
		after  time.Duration
		notes  string
	}{
		"nothing changes":           {list(lists("nginx:1", 0, "a")), "", 9 * time.Minute, ""},
		"never had an owner":        {list(lists("nginx:1", 0)), "", 9 * time.Minute, ""},
		"its owner is gone":         {list(lists("nginx:1", 0, "gone")), "-", 0, "Dropped nginx:1"},
		"one of its owners is gone": {list(lists("nginx:1", 0, "gone", "a")), "1/a/", 0, ""},
		"of another release": {
			change: list(lists("nginx:1", 0, "gone"), ours(func(o *corev1.ObjectReference) {
				o.APIVersion = "apps.kruise.io/v1alpha1"
			})),
			want:  "-",
			notes: "Dropped nginx:1",
		},
		"of another group": {
			change: list(lists("nginx:1", 0, "gone"), ours(func(o *corev1.ObjectReference) { o.APIVersion = "apps/v1" })),
			after:  9 * time.Minute,
		},
		"a Deployment": {
			change: list(lists("nginx:1", 0, "gone"), ours(func(o *corev1.ObjectReference) { o.Kind = "Deployment" })),
			after:  9 * time.Minute,
		},
		"nobody knows since when": {
			change: list(lists("nginx:1", 0, "a"), lists("nginx:2", 0, "a"), edit("nginx", func(s *v1beta1.ImageTagSpec) {
				s.CreatedAt = nil
			})),
			want:  "2/a/",
			notes: "Dropped nginx:1",
		},
		"ended long ago":        {list(lists("nginx:1", 0, "a"), done, stale(30)), "-", 0, "Dropped nginx:1"},
		"ended not so long ago": {list(lists("nginx:1", 0, "a"), done, stale(50)), "", 20 * time.Second, ""},
		"to end soon": {
			change: list(lists("nginx:1", 0, "a"), done, stale(31)), after: 3*time.Second + 7*time.Millisecond,
		},
		"a negative ttl":     {list(lists("nginx:1", 0, "a"), done, stale(-5)), "-", 0, "Dropped nginx:1"},
		"ended another time": {list(lists("nginx:1", 1, "a"), done, stale(30)), "", 9 * time.Minute, ""},
		"stays for ever": {
			change: list(lists("nginx:1", 0, "a"), done, edit("nginx", func(s *v1beta1.ImageTagSpec) { s.PullPolicy = nil })),
		},
		"has no end yet": {list(lists("nginx:1", 0, "a"), did("nginx:1", 0, pulling), stale(0)), "", 0, ""},
		"what waits is seen next": {
			change: list(lists("nginx:1", 0, "a"), done, stale(50), lists("nginx:2", 0, "gone")),
			want:   "1/a/",
			notes:  "Dropped nginx:2",
		},
		"secrets":                  {list(lists("nginx:1", 0, "a"), batch), "1/a/gonebatch here", 0, "Dropped nginx"},
		"secrets go with the tags": {list(lists("nginx:1", 0, "gone"), batch), "-", 0, "Dropped nginx:1"},
		"an image without tags": {
			change: list(func(n *v1beta1.NodeImage) { n.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {}} }), want: "-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeImage("n1", append(test.change, inZone)...)
			before := n.DeepCopy()
			plan := imagepull.Maintain(imagepull.Upkeep{
				Node: clusterNode(), Image: n, Now: noon(), Random: 7,
				OwnerGone:  func(o corev1.ObjectReference) bool { return o.Name == "gone" },
				SecretGone: func(s v1beta1.ReferenceObject) bool { return s.Name == "gone" },
			})
			if diff := cmp.Diff(before, n); diff != "" {
				t.Fatalf("the NodeImage has changed:\n%s", diff)
			}
			got := ""
			if plan.Update != nil {
				got = short(plan.Update.Spec.Images)
			}
			if got != test.want || plan.RequeueAfter != test.after || codes(plan.Notes) != test.notes {
				t.Errorf("%q after %v, notes %q; want %q after %v, %q",
					got, plan.RequeueAfter, codes(plan.Notes), test.want, test.after, test.notes)
			}
			if plan.Status != nil || plan.Delete || plan.Create != nil {
				t.Errorf("more than one thing at once: %s", jsonOf(plan))
			}
		})
	}
}

// A list of copies that is too long loses its oldest references to deleted copies, and no others.
func TestMaintainCopies(t *testing.T) {
	var all []v1beta1.ReferenceObject
	for i := range 66 {
		name := fmt.Sprintf("copy-%d", i)
		if i%10 == 1 {
			name = fmt.Sprintf("gone-%d", i)
		}
		all = append(all, v1beta1.ReferenceObject{Name: name, Mode: v1beta1.ReferenceObjectModeBatch})
	}
	plan := imagepull.Maintain(imagepull.Upkeep{
		Node: clusterNode(), Now: noon(),
		Image:      nodeImage("n1", inZone, lists("nginx:1", 0, "a"), secretsOf("nginx", all...)),
		SecretGone: func(s v1beta1.ReferenceObject) bool { return strings.HasPrefix(s.Name, "gone") },
	})
	want := slices.DeleteFunc(slices.Clone(all), func(s v1beta1.ReferenceObject) bool {
		return s.Name == "gone-1" || s.Name == "gone-11"
	})
	if plan.Update == nil {
		t.Fatal("nothing is dropped")
	}
	if diff := cmp.Diff(want, plan.Update.Spec.Images["nginx"].PullSecrets); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func short(images map[string]v1beta1.ImageSpec) string {
	image, ok := images["nginx"]
	if !ok {
		return "-"
	}
	var tags, secrets []string
	for _, tag := range image.Tags {
		var owners []string
		for _, o := range tag.OwnerReferences {
			owners = append(owners, o.Name)
		}
		tags = append(tags, tag.Tag+"/"+strings.Join(owners, "+"))
	}
	for _, s := range image.PullSecrets {
		secrets = append(secrets, s.Name+string(s.Mode))
	}
	return strings.Join(tags, ",") + "/" + strings.Join(secrets, " ")
}

// Where reading failed nothing is known to be gone, and nothing is dropped.
func TestMaintainKnowsNothing(t *testing.T) {
	n := nodeImage("n1", inZone, lists("nginx:1", 0, "gone"), secretsOf("nginx", v1beta1.ReferenceObject{Name: "gone"}))
	if plan := imagepull.Maintain(imagepull.Upkeep{Node: clusterNode(), Image: n, Now: noon()}); plan.Update != nil {
		t.Error(jsonOf(plan.Update))
	}
}

// A pull of which the node does not tell ends, and its owners hear of it.
func TestMaintainAnswer(t *testing.T) {
	createdAgo := func(d time.Duration) func(*v1beta1.NodeImage) {
		return edit("nginx", func(s *v1beta1.ImageTagSpec) { s.CreatedAt = ago(d) })
	}
	limited := func(n int64) func(*v1beta1.NodeImage) {
		return edit("nginx", func(s *v1beta1.ImageTagSpec) { s.PullPolicy.ActiveDeadlineSeconds = &n })
	}
	gaveUp := func(version int64, message string, start *metav1.Time) v1beta1.ImageTagStatus {
		return v1beta1.ImageTagStatus{
			Tag: "1", Version: version, Phase: failed, StartTime: start, CompletionTime: ago(0), Message: message,
		}
	}
	const silent, late = "node has not responded for a long time", "pulling exceeds the activeDeadlineSeconds"
	for name, test := range map[string]struct {
		change []func(*v1beta1.NodeImage)
		want   *v1beta1.ImageTagStatus
		after  time.Duration
	}{
		"silent":          {list(createdAgo(10 * time.Minute)), ptr.To(gaveUp(2, silent, nil)), 0},
		"silent for less": {list(createdAgo(9 * time.Minute)), nil, time.Minute},
		"silent about this round": {
			list(createdAgo(10*time.Minute), did("nginx:1", 1, succeeded)), ptr.To(gaveUp(2, silent, nil)), 0,
		},
		"slow, and no limit": {list(createdAgo(time.Hour), did("nginx:1", 2, pulling)), nil, 0},
		"slow": {
			list(createdAgo(20*time.Minute), limited(600), did("nginx:1", 2, pulling)),
			ptr.To(gaveUp(2, late, ago(time.Minute))), 0,
		},
		"slow, and the node may yet tell": {
			list(createdAgo(19*time.Minute), limited(600), did("nginx:1", 2, pulling)), nil, time.Minute,
		},
		"ended": {
			list(createdAgo(time.Hour), limited(1), did("nginx:1", 2, failed)), nil, 16*time.Minute + 10*time.Second,
		},
		"an endless limit": {
			list(createdAgo(time.Hour), limited(1<<62), did("nginx:1", 2, pulling)), nil, centuries() - 50*time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeImage("n1", append(list(lists("nginx:1", 2, "a"), inZone), test.change...)...)
			n.Status.FirstSyncStatus = &v1beta1.SyncStatus{Message: "kept"}
			before := n.DeepCopy()
			plan := imagepull.Maintain(imagepull.Upkeep{Node: clusterNode(), Image: n, Now: noon()})
			if diff := cmp.Diff(before, n); diff != "" {
				t.Fatalf("the NodeImage has changed:\n%s", diff)
			}
			if plan.RequeueAfter != test.after {
				t.Errorf("again after %v, want %v", plan.RequeueAfter, test.after)
			}
			if test.want == nil {
				if plan.Status != nil || plan.Failures != nil {
					t.Error(jsonOf(plan))
				}
				return
			}
			want := &v1beta1.NodeImageStatus{
				Desired: 1, Failed: 1, FirstSyncStatus: &v1beta1.SyncStatus{Message: "kept"},
				ImageStatuses: map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{*test.want}}},
			}
			if diff := cmp.Diff(want, plan.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			failures := []imagepull.Failure{{
				Reference: imagepull.Reference{Name: "nginx", Tag: "1"},
				Owners:    []corev1.ObjectReference{owner("a")},
				Message:   test.want.Message,
			}}
			if diff := cmp.Diff(failures, plan.Failures); diff != "" || codes(plan.Notes) != "NoAnswer nginx:1" {
				t.Errorf("failures (-want +got):\n%s\n%s", diff, codes(plan.Notes))
			}
		})
	}
}

// A node that is not ready does not report how its pulls end: after as long as a node may be silent, they end for it.
func TestMaintainNotReadyNode(t *testing.T) {
	createdAgo := func(d time.Duration) func(*v1beta1.NodeImage) {
		return edit("nginx", func(s *v1beta1.ImageTagSpec) { s.CreatedAt = ago(d) })
	}
	status := func(s corev1.ConditionStatus, since time.Duration) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions[1].Status, n.Status.Conditions[1].LastTransitionTime = s, *ago(since)
		}
	}
	for name, test := range map[string]struct {
		node   func(*corev1.Node)
		change []func(*v1beta1.NodeImage)
		fails  bool
		after  time.Duration
	}{
		"a pull under way on a node that has not been ready for long fails": {
			node:   status(corev1.ConditionUnknown, 10*time.Minute),
			change: list(createdAgo(time.Hour), did("nginx:1", 0, pulling)),
			fails:  true,
		},
		"so does one that waits for its turn there": {
			node:   status(corev1.ConditionFalse, 11*time.Minute),
			change: list(createdAgo(time.Hour), did("nginx:1", 0, waiting)),
			fails:  true,
		},
		"it is given the time in which the node may be silent": {
			node:   status(corev1.ConditionUnknown, 4*time.Minute),
			change: list(createdAgo(time.Hour), did("nginx:1", 0, pulling)),
			after:  6 * time.Minute,
		},
		"a pull that was asked for later is given as much": {
			node:   status(corev1.ConditionUnknown, time.Hour),
			change: list(createdAgo(9*time.Minute), did("nginx:1", 0, pulling)),
			after:  time.Minute,
		},
		"a node that is ready may take its time": {
			node: status(corev1.ConditionTrue, time.Hour), change: list(createdAgo(time.Hour), did("nginx:1", 0, pulling)),
		},
		"a node without the condition is not known to be unready": {
			node:   func(n *corev1.Node) { n.Status.Conditions = nil },
			change: list(createdAgo(time.Hour), did("nginx:1", 0, pulling)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeImage("n1", append(list(lists("nginx:1", 0, "a"), inZone), test.change...)...)
			plan := imagepull.Maintain(imagepull.Upkeep{Node: clusterNode(test.node), Image: n, Now: noon()})
			if plan.RequeueAfter != test.after || (len(plan.Failures) == 1) != test.fails || (plan.Status != nil) != test.fails {
				t.Fatal(jsonOf(plan))
			}
			if !test.fails {
				return
			}
			if f := plan.Failures[0]; f.Message != "node has not responded for a long time" || len(f.Owners) != 1 ||
				plan.Status.Failed != 1 {
				t.Error(jsonOf(plan))
			}
		})
	}
}

// A status is written whole: sorted, and without what is no longer listed.
func TestMaintainSorts(t *testing.T) {
	n := nodeImage("n1", inZone,
		lists("nginx:1", 0), lists("nginx:2", 0), lists("nginx:3", 0), lists("nginx:4", 0), lists("redis:1", 0),
		did("nginx:4", 0, waiting), did("nginx:3", 0, pulling), did("nginx:2", 0, failed), did("nginx:1", 0, succeeded),
		did("nginx:9", 0, succeeded), did("mysql:1", 0, failed))
	plan := imagepull.Maintain(imagepull.Upkeep{Node: clusterNode(), Image: n, Now: noon()})
	var tags []string
	for _, s := range plan.Status.ImageStatuses["nginx"].Tags {
		tags = append(tags, s.Tag)
	}
	if len(plan.Status.ImageStatuses) != 1 || strings.Join(tags, " ") != "1 2 3 4" {
		t.Errorf("%v of %d images", tags, len(plan.Status.ImageStatuses))
	}
	n.Status = *plan.Status
	if again := imagepull.Maintain(imagepull.Upkeep{Node: clusterNode(), Image: n, Now: noon()}); again.Status != nil {
		t.Error("written twice")
	}
}

func TestMaintainSettings(t *testing.T) {
	n := nodeImage("n1", inZone, lists("nginx:1", 0))
	if plan := imagepull.Maintain(imagepull.Upkeep{
		Node: clusterNode(), Image: n, Now: noon(), Answer: time.Minute,
	}); plan.Status == nil {
		t.Error("the node may be silent for longer than it was told")
	}
	if plan := imagepull.Maintain(imagepull.Upkeep{
		Node: clusterNode(readyFor(time.Minute)), Now: noon(), ReadyFor: time.Hour,
	}); plan.Create != nil {
		t.Error("ready for less than was asked for")
	}
}

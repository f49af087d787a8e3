package workloadspread

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// world has a CloneSet, nodes in zones, admission, and the production pass.
type world struct {
	t     *testing.T
	ws    *subset.Spread
	now   time.Time
	pods  []*corev1.Pod
	names int
	// room is how many pods the nodes of a zone take.
	room  map[string]int
	story strings.Builder
	// writes counts those of the controller and of admission.
	patches, statuses int
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(&w.story, format+"\n", args...) }

// scale has the CloneSet create or delete pods: the lowest cost first, as the CloneSet does.
func (w *world) scale(to int) {
	w.say("\nthe CloneSet wants %d pods", to)
	w.settle(to)
}

func (w *world) settle(to int) {
	for range 50 {
		before := len(w.pods)
		for len(w.pods) < to {
			w.create()
		}
		sort.SliceStable(w.pods, func(i, j int) bool { return cost(w.pods[i]) > cost(w.pods[j]) })
		if len(w.pods) > to {
			w.pods = w.pods[:to]
		}
		w.schedule()
		if w.reconcile() == 0 && before == len(w.pods) {
			break
		}
	}
	w.show()
}

// create admits a pod, and creates it.
func (w *world) create() {
	pod := podOf(fmt.Sprintf("web-%02d", w.names), w.now)
	w.names++
	limits, _ := subset.Limits(w.ws.Spec.Subsets, subset.Base{})
	b := subset.Open(w.ws, limits)
	place := b.Admit(subset.Arrival{Version: appsv1beta1.WorkloadSpreadVersionIgnored, ID: pod.Name}, w.now)
	if b.Changed() {
		next := w.ws.DeepCopy()
		next.Status = b.Status()
		w.ws = next
		w.statuses++
	}
	if place.Subset != nil {
		injected, err := subset.Inject(pod, place.Subset, subset.Match{Name: "spread", Subset: place.Subset.Name})
		if err != nil {
			w.t.Fatal(err)
		}
		pod = injected
	}
	w.pods = append(w.pods, pod)
}

// schedule binds pods to zones with room.
func (w *world) schedule() {
	used := map[string]int{}
	for _, pod := range w.pods {
		used[strings.TrimPrefix(pod.Spec.NodeName, "node-")]++
	}
	for _, pod := range w.pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		zones := []string{"a", "b", "c"}
		if m, is := subset.MatchOf(pod); is {
			zones = []string{m.Subset}
		}
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}
		for _, zone := range zones {
			if used[zone] < w.room[zone] {
				used[zone]++
				run(pod, zone, w.now)
				break
			}
		}
	}
}

// reconcile runs the pass, and returns how many writes it made. No limit may be exceeded by pods of the subset.
func (w *world) reconcile() int {
	s := snapshotOf(w.ws, w.pods...)
	s.now = w.now
	p := plan(s)
	writes := len(p.patches) + len(p.deletions)
	before, _ := json.Marshal(w.ws.Status)
	if after, _ := json.Marshal(p.status); string(before) != string(after) {
		w.statuses++
		writes++
	}
	next := w.ws.DeepCopy()
	next.Status = p.status
	w.ws = next
	for _, patch := range p.patches {
		w.patches++
		data, err := patch.Data()
		if err != nil {
			w.t.Fatal(err)
		}
		i := slices.IndexFunc(w.pods, func(pod *corev1.Pod) bool { return pod.Name == patch.Object.GetName() })
		w.pods[i] = w.applied(w.pods[i], data)
	}
	for _, deletion := range p.deletions {
		i := slices.IndexFunc(w.pods, func(pod *corev1.Pod) bool { return pod.Name == deletion.Object.GetName() })
		w.say("  deletes %s, which finds no node in %s", w.pods[i].Name, in(w.pods[i]))
		w.pods = slices.Delete(w.pods, i, i+1)
	}
	for _, n := range p.notes {
		w.say("  %s: %s", n.Code, n.Text)
	}
	counts := map[string]int{}
	for _, pod := range w.pods {
		counts[in(pod)]++
	}
	for i := range w.ws.Spec.Subsets {
		if s := &w.ws.Spec.Subsets[i]; s.MaxReplicas != nil && counts[s.Name] > s.MaxReplicas.IntValue() {
			w.t.Fatalf("%d pods in %s\n%s", counts[s.Name], s.Name, w.story.String())
		}
	}
	return writes
}

func (w *world) applied(pod *corev1.Pod, data []byte) *corev1.Pod {
	text, err := json.Marshal(pod)
	if err != nil {
		w.t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		w.t.Fatal(err)
	}
	if text, err = patch.Apply(text); err != nil {
		w.t.Fatal(err)
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(text, next); err != nil {
		w.t.Fatal(err)
	}
	return next
}

func (w *world) show() {
	counts := map[string]int{}
	for _, pod := range w.pods {
		where := in(pod)
		if pod.Spec.NodeName == "" {
			where += " without a node"
		}
		counts[where]++
	}
	var parts []string
	for where, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", where, n))
	}
	sort.Strings(parts)
	missing := make([]string, 0, len(w.ws.Status.SubsetStatuses))
	for _, e := range w.ws.Status.SubsetStatuses {
		text := fmt.Sprintf("%s missing %d", e.Name, e.MissingReplicas)
		for _, c := range e.Conditions {
			if c.Status == metav1.ConditionFalse {
				text += ", " + c.Reason
			}
		}
		missing = append(missing, text)
	}
	w.say("  pods: %s; %s", strings.Join(parts, ", "), strings.Join(missing, ", "))
}

func in(pod *corev1.Pod) string {
	if m, is := subset.MatchOf(pod); is {
		return m.Subset
	}
	return "anywhere"
}

func cost(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0
	}
	return n
}

// TestStories: what happens over time, in words.
func TestStories(t *testing.T) {
	for name, tell := range map[string]func(*world){
		"a zone fills and overflows": func(w *world) {
			w.ws = spreadOf(3, 2)
			w.scale(4)
			w.scale(7)
			w.scale(5)
			w.scale(2)
		},
		"a zone dies and comes back": func(w *world) {
			w.ws = adaptive(spreadOf(3, 3, -1))
			w.scale(4)
			w.say("\nzone b has no room for new pods")
			w.room["b"] = 1
			w.scale(6)
			w.say("\nten seconds later")
			w.now = w.now.Add(11 * time.Second)
			w.settle(6)
			w.say("\nzone b has room again, and five minutes pass")
			w.room["b"] = 100
			w.now = w.now.Add(subset.UnschedulableFor + time.Second)
			w.settle(6)
			w.scale(8)
		},
		"an elastic burst and the return": func(w *world) {
			w.ws = spreadOf(3, -1)
			w.scale(3)
			w.scale(9)
			w.scale(3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, now: noon(), room: map[string]int{"a": 100, "b": 100, "c": 100}}
			tell(w)
			w.say("\nwrites: %d of pods, %d of the status", w.patches, w.statuses)
			storytest.Compare(t, name, w.story.String())
		})
	}
}

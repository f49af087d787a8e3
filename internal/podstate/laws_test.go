package podstate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

// TestAgainstOracle compares random passes with a second implementation that walks over everything.
func TestAgainstOracle(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 5_000 {
		in, reserved := draw(random)
		pass := podstate.Plan(in)
		if diff := cmp.Diff(oracle(in, reserved), places(pass.Status.PodStates)); diff != "" {
			t.Fatalf("seed %d, %d: %+v\n(-want +got):\n%s", seed, i, in.State, diff)
		}
		shuffled := in
		shuffled.Pods = slices.Clone(in.Pods)
		random.Shuffle(len(shuffled.Pods), func(i, j int) {
			shuffled.Pods[i], shuffled.Pods[j] = shuffled.Pods[j], shuffled.Pods[i]
		})
		if diff := cmp.Diff(pass, podstate.Plan(shuffled)); diff != "" {
			t.Fatalf("seed %d, %d: the order of pods matters:\n%s", seed, i, diff)
		}
		again := in
		again.State = in.State.DeepCopy()
		again.State.Status = pass.Status
		if next := podstate.Plan(again); !cmp.Equal(pass.Status, next.Status) {
			t.Fatalf("seed %d, %d: the next pass differs:\n%s", seed, i, cmp.Diff(pass.Status, next.Status))
		}
		for _, pod := range in.Pods {
			if next := podstate.Steer(pod, again.State); next != nil && podstate.Steer(next, again.State) != nil {
				t.Fatalf("seed %d, %d: pod %s is steered twice", seed, i, pod.Name)
			}
		}
	}
}

func draw(random *rand.Rand) (podstate.Input, map[int]bool) {
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	s := newState()
	if random.IntN(2) == 0 {
		requiring(zone, host)(s)
	}
	if random.IntN(4) == 0 {
		s.Spec.RequiredPersistentTopology = nil
	}
	if random.IntN(3) == 0 {
		annotations("address")(s)
	}
	if random.IntN(3) == 0 {
		s.Spec.PersistentPodStateRetentionPolicy = "WhenDeleted"
	}
	if random.IntN(3) == 0 {
		s.Annotations = map[string]string{v1beta1.AnnotationReleaseMissingTopologyAfter: pick("0s", "5m")}
	}
	var nodes []*corev1.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		if random.IntN(3) > 0 {
			nodes = append(nodes, newNode(name, pick("a", "b")))
		}
	}
	var pods []*corev1.Pod
	for i := range random.IntN(6) {
		name, node := ordinals.Name("db", int32(i)), pick("n1", "n2", "n3")
		if random.IntN(2) == 0 {
			recorded(name, pick("n1", "n2", "n3"), pick("a", "b"))(s)
			if r := s.Status.PodStates[name]; random.IntN(3) == 0 {
				r.MissingSince = &metav1.Time{Time: now.Add(-time.Duration(random.IntN(10)) * time.Minute)}
				s.Status.PodStates[name] = r
			}
		}
		if random.IntN(4) == 0 {
			continue
		}
		build := []func(string, string) *corev1.Pod{ready, ready, ready, unready, ended, leaving}[random.IntN(6)]
		pod := build(name, node)
		if random.IntN(2) == 0 {
			pod.Annotations = map[string]string{"address": "10"}
		}
		pods = append(pods, pod)
	}
	in := input(s, int32(random.IntN(6)), nodes, pods...)
	reserved := map[int]bool{}
	if n := random.IntN(4); n > 0 {
		reserved[n] = true
		in.Workload.Ordinals.Reserved, _ = ordinals.Parse([]intstr.IntOrString{intstr.FromInt(n)})
	}
	in.Workload.Ordinals.Start = int32(random.IntN(2))
	in.Workload.Gone = random.IntN(10) == 0
	return in, reserved
}

// oracle is what is recorded, as places tells it.
func oracle(in podstate.Input, reserved map[int]bool) map[string]string {
	told := map[string]string{}
	if in.Workload.Gone {
		return told
	}
	s := in.State
	var required []string
	if s.Spec.RequiredPersistentTopology != nil {
		required = s.Spec.RequiredPersistentTopology.Keys
	}
	wanted := map[string]bool{}
	for _, k := range required {
		wanted[k] = true
	}
	for _, p := range s.Spec.PreferredPersistentTopology {
		wanted[p.Preference.Keys[0]] = true
	}
	records := maps.Clone(s.Status.PodStates)
	if records == nil {
		records = map[string]v1beta1.PodState{}
	}
	alive := map[string]bool{}
	for _, pod := range in.Pods {
		alive[pod.Name] = pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
		if node := in.Node(pod.Spec.NodeName); alive[pod.Name] && pod.Status.Conditions[0].Status == corev1.ConditionTrue &&
			node != nil {
			stays := judged(podstate.Input{State: newState(), Nodes: in.Nodes}, records[pod.Name], required).MissingSince == nil
			records[pod.Name] = renewed(records[pod.Name], pod, node, wanted, len(s.Spec.PersistentPodAnnotations) > 0, stays)
		}
	}
	ordinalsWanted := map[string]bool{}
	for o, n := int(in.Workload.Ordinals.Start), 0; n < int(in.Workload.Ordinals.Replicas); o++ {
		if !reserved[o] {
			ordinalsWanted["db-"+strconv.Itoa(o)] = true
			n++
		}
	}
	for name := range records {
		if s.Spec.PersistentPodStateRetentionPolicy != "WhenDeleted" && !ordinalsWanted[name] && !alive[name] {
			delete(records, name)
		}
	}
	for name, r := range records {
		records[name] = judged(in, r, required)
	}
	return places(records)
}

func renewed(
	was v1beta1.PodState, pod *corev1.Pod, node *corev1.Node, wanted map[string]bool, address, stays bool,
) v1beta1.PodState {
	next := v1beta1.PodState{NodeName: node.Name}
	for k, v := range node.Labels {
		if wanted[k] {
			if next.NodeTopologyLabels == nil {
				next.NodeTopologyLabels = map[string]string{}
			}
			next.NodeTopologyLabels[k] = v
		}
	}
	if v, is := pod.Annotations["address"]; is && address {
		next.Annotations = map[string]string{"address": v}
	}
	complete := stays && was.NodeName == node.Name && len(was.NodeTopologyLabels) == len(wanted) &&
		(len(was.Annotations) > 0) == address
	for k := range was.NodeTopologyLabels {
		complete = complete && wanted[k]
	}
	if complete || was.NodeName == next.NodeName && maps.Equal(was.NodeTopologyLabels, next.NodeTopologyLabels) &&
		maps.Equal(was.Annotations, next.Annotations) {
		return was
	}
	return next
}

// judged is a record with what nodes say of it.
func judged(in podstate.Input, r v1beta1.PodState, required []string) v1beta1.PodState {
	exists := func(keys []string) bool {
		return slices.ContainsFunc(in.Nodes(), func(n *corev1.Node) bool {
			return !slices.ContainsFunc(keys, func(k string) bool { return n.Labels[k] != r.NodeTopologyLabels[k] })
		})
	}
	var keys []string
	for _, k := range required {
		if _, is := r.NodeTopologyLabels[k]; is {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 || exists(keys) {
		r.MissingSince = nil
		return r
	}
	if r.MissingSince == nil {
		r.MissingSince = &metav1.Time{Time: now}
	}
	after, err := time.ParseDuration(in.State.Annotations[v1beta1.AnnotationReleaseMissingTopologyAfter])
	if err != nil || now.Sub(r.MissingSince.Time) < after {
		return r
	}
	labels := maps.Clone(r.NodeTopologyLabels)
	var kept []string
	for _, k := range keys {
		if exists(append(slices.Clone(kept), k)) {
			kept = append(kept, k)
		} else {
			delete(labels, k)
		}
	}
	r.NodeTopologyLabels, r.MissingSince, r.ReleasedAt = labels, nil, &metav1.Time{Time: now}
	return r
}

func ExamplePlan() {
	nodes := []*corev1.Node{newNode("n1", "a")}
	pass := podstate.Plan(input(newState(), 2, nodes, ready("db-0", "n1"), unready("db-1", "n1")))
	for name, r := range pass.Status.PodStates {
		fmt.Println(name, r.NodeName, r.NodeTopologyLabels[zone])
	}
	// Output:
	// db-0 n1 a
}

func ExampleSteer() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0"}}
	steered := podstate.Steer(pod, newState(recorded("db-0", "n1", "a")))
	fmt.Println(steered.Spec.NodeSelector)
	fmt.Println(podstate.Steer(steered, newState(recorded("db-0", "n1", "a"))) == nil)
	// Output:
	// map[topology.kubernetes.io/zone:a]
	// true
}

func ExampleGenerate() {
	workload := asker("true", "topology.kubernetes.io/zone, kubernetes.io/hostname")
	g := podstate.Generate([]podstate.Asker{workload}, nil)
	fmt.Println(g.Action, g.State.Name, strings.Join(g.State.Spec.RequiredPersistentTopology.Keys, " "))
	// Output:
	// Create db topology.kubernetes.io/zone kubernetes.io/hostname
}

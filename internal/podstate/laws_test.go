package podstate_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
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
		before := in.State.DeepCopy()
		pass := podstate.Plan(in)
		same := func(law string, want, got any) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %d: %s: %+v\n(-want +got):\n%s", seed, i, law, in.State, diff)
			}
		}
		same("the input stays", before, in.State)
		same("the oracle records the same", oracle(in, reserved), places(pass.Status.PodStates))
		shuffled := in
		shuffled.Pods = slices.Clone(in.Pods)
		random.Shuffle(len(shuffled.Pods), func(i, j int) {
			shuffled.Pods[i], shuffled.Pods[j] = shuffled.Pods[j], shuffled.Pods[i]
		})
		same("the order of pods does not matter", pass, podstate.Plan(shuffled))
		few := in
		few.Nodes = nodesOf(in)
		if !podstate.NeedsAllNodes(in.State, few.Nodes) {
			same("the nodes of pods and records are enough", pass, podstate.Plan(few))
		}
		again := in
		again.State = in.State.DeepCopy()
		again.State.Status = pass.Status
		same("an applied pass gives the same status", pass.Status, podstate.Plan(again).Status)
		for _, pod := range in.Pods {
			if next := podstate.Steer(pod, again.State); next != nil && podstate.Steer(next, again.State) != nil {
				t.Fatalf("seed %d, %d: pod %s is steered twice", seed, i, pod.Name)
			}
		}
	}
}

// nodesOf returns the nodes of pods and of records.
func nodesOf(in podstate.Input) map[string]*corev1.Node {
	few := maps.Clone(in.Nodes)
	maps.DeleteFunc(few, func(name string, _ *corev1.Node) bool {
		if slices.ContainsFunc(in.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == name }) {
			return false
		}
		for _, r := range in.State.Status.PodStates {
			if r.NodeName == name {
				return false
			}
		}
		return true
	})
	return few
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
		policy(v1beta1.PersistentPodStateRetentionPolicyType(pick("WhenDeleted", "unknown")))(s)
	}
	if random.IntN(3) == 0 {
		s.Annotations = map[string]string{v1beta1.AnnotationReleaseMissingTopologyAfter: pick("0s", "5m")}
	}
	var nodes []*corev1.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		node := newNode(name, pick("a", "b"))
		if random.IntN(6) == 0 {
			delete(node.Labels, zone)
		}
		if random.IntN(3) > 0 {
			nodes = append(nodes, node)
		}
	}
	if random.IntN(4) == 0 {
		recorded("db-x", "n1", "a")(s) // no ordinal
	}
	var pods []*corev1.Pod
	for i := range random.IntN(6) {
		name, node := ordinals.Name("db", int32(i)), pick("n1", "n2", "n3")
		if random.IntN(2) == 0 {
			recorded(name, pick("n1", "n2", "n3"), pick("a", "b"))(s)
			r, ago := s.Status.PodStates[name], &metav1.Time{Time: now.Add(-time.Duration(random.IntN(10)) * time.Minute)}
			switch random.IntN(4) {
			case 0:
				r.MissingSince = ago
			case 1:
				r.ReleasedAt = ago
				delete(r.NodeTopologyLabels, pick(zone, host))
			}
			s.Status.PodStates[name] = r
		}
		if random.IntN(4) == 0 {
			continue
		}
		waits := func(name, _ string) *corev1.Pod { return pending(name, pick("a", "b"), now.Add(-time.Hour)) }
		build := []func(string, string) *corev1.Pod{ready, ready, ready, unready, ended, leaving, waits}[random.IntN(7)]
		pod := build(name, node)
		if random.IntN(2) == 0 {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "address", "10")
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
	in.Workload.Gone, in.Workload.Unknown = random.IntN(10) == 0, random.IntN(10) == 0
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
		alive[pod.Name] = pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed
		if node := in.Nodes[pod.Spec.NodeName]; alive[pod.Name] && pod.Status.Conditions[0].Status == corev1.ConditionTrue &&
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
		if s.Spec.PersistentPodStateRetentionPolicy != "WhenDeleted" && !in.Workload.Unknown && name != "db-x" &&
			!ordinalsWanted[name] && !alive[name] {
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
	if complete {
		return was
	}
	return next
}

// judged is a record with what nodes say of it.
func judged(in podstate.Input, r v1beta1.PodState, required []string) v1beta1.PodState {
	exists := func(keys []string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(in.Nodes)), func(n *corev1.Node) bool {
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

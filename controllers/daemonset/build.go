package daemonset

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset/internal/placement"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/eligible"
	"github.com/kruisekit/kruisekit/write"
)

// schedulerName is the scheduler of pods that the reconciler binds itself.
const schedulerName = "kubernetes.io/daemonset-controller"

// maker makes new pods.
type maker struct {
	options  Options
	snapshot *snapshot
	plan     *plan
	// nodes are the UIDs of the nodes, by name.
	nodes map[string]types.UID
}

// build returns the pod of each creation. A node whose orphan is adopted waits for the pass that observes the adoption.
func (b *maker) build(creations []workload.Creation) ([][]write.Object, error) {
	s := b.snapshot
	taken := maps.Clone(s.Taken)
	if taken == nil {
		taken = map[string]bool{}
	}
	for name, until := range s.known.taken {
		taken[name] = taken[name] || s.Now.Before(until)
	}
	for _, pod := range s.AllPods() {
		taken[pod.Name] = true
	}
	b.nodes = make(map[string]types.UID, len(s.nodes))
	for _, node := range s.nodes {
		b.nodes[node.Name] = node.UID
	}
	adopted := map[string]bool{}
	for _, pod := range s.Orphans {
		adopted[eligible.NodeOf(pod)] = true
	}
	all := make([][]write.Object, len(creations))
	most := workloads.MaxCreations(len(creations), &b.snapshot.set.Spec)
	for i, c := range creations {
		if most == 0 {
			break // the next pass goes on
		}
		node := placement.NodeOf(c.Slot)
		if adopted[node] {
			continue
		}
		name := b.name(node, taken)
		taken[name] = true
		all[i] = []write.Object{b.newPod(name, node)}
		most--
	}
	return all, nil
}

// labels are those of a new pod.
func (b *maker) labels() labels.Set {
	all := labels.Merge(b.snapshot.set.Spec.Template.Labels, labels.Set{
		kruise.PodRevisionLabelKey: hashOf(b.plan.Revision()),
	})
	if generation, given := b.snapshot.templateGeneration(); given {
		all[kruise.DaemonSetTemplateGenerationKey] = generation
	}
	return all
}

func (b *maker) newPod(name, node string) *corev1.Pod {
	s := b.snapshot
	template := s.set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{Spec: template.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: s.set.Namespace, Name: name, GenerateName: s.set.Name + "-", Finalizers: template.Finalizers,
		Labels: b.labels(), Annotations: template.Annotations, OwnerReferences: []metav1.OwnerReference{s.ControllerRef()},
	}}
	eligible.Tolerate(&pod.Spec, eligible.DaemonTolerations(&pod.Spec))
	if b.options.BindDirectly {
		pod.Spec.NodeName, pod.Spec.SchedulerName = node, schedulerName
	} else {
		eligible.Pin(&pod.Spec, node)
	}
	if b.plan.isInPlace() && b.plan.placed.Surge == 0 {
		inplace.EnsureReadinessGate(&pod.Spec, nil)
	}
	return pod
}

// diff reports whether the update from a revision is possible in place.
func (p *plan) diff(s *snapshot, o Options, hash string) bool {
	stored := revision.Find(s.Revisions, hash)
	if stored == nil || hash == "" {
		return false
	}
	from, err := revision.Decode(stored.Data.Raw)
	if err != nil {
		return false
	}
	to, err := revision.Decode(p.Data)
	if err != nil {
		return false
	}
	_, blocked := inplace.Diff(from, to, workloads.Policy(o.Installed))
	return blocked == nil
}

// predecessors are the pods that the nodes had last, as far as this process has observed them.
type predecessors struct {
	// last are those of the nodes that exist, by the name of the node.
	last map[string]predecessor
	// seen are the pods of the last observation.
	seen map[types.UID]bool
}

// predecessor is the pod that came last to a node; without a UID for none.
type predecessor struct {
	uid types.UID
	// doubtful means that it is what the process has found: an earlier one may have known another pod, and named the next
	// one after that.
	doubtful bool
}

// next returns what is known after an observation. Only a pod that is new to the process takes the place of the last
// one of its node: the same pods in another state, or fewer of them, change nothing. Of several new pods the newest
// counts.
func (p predecessors) next(nodes []*corev1.Node, pods []*corev1.Pod) predecessors {
	n := predecessors{last: make(map[string]predecessor, len(nodes)), seen: make(map[types.UID]bool, len(pods))}
	for _, node := range nodes {
		if is, known := p.last[node.Name]; known {
			n.last[node.Name] = is
		} else {
			n.last[node.Name] = predecessor{doubtful: p.last == nil}
		}
	}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	for _, pod := range pods {
		n.seen[pod.UID] = true
		if !p.seen[pod.UID] {
			n.last[eligible.NodeOf(pod)] = predecessor{uid: pod.UID, doubtful: p.last == nil}
		}
	}
	return n
}

// name returns the name of a new pod. It follows from the node and from the pod that came last to it: a creation that
// is repeated, because its answer was lost or a cache does not show it, gives no second pod, and a pod that replaces
// another one has a name of its own. The template is left out, for it may change before a creation is repeated.
func (b *maker) name(node string, taken map[string]bool) string {
	const suffix = 10
	h := fnv.New64a()
	fmt.Fprint(h, b.snapshot.set.UID, node, b.nodes[node], b.plan.pods.last[node].uid)
	stem := workloads.StemOf(b.snapshot.set.Name) + "-"
	for {
		sum := h.Sum64()
		hash := revision.EncodeSafely(uint32(sum)) + revision.EncodeSafely(uint32(sum>>32))
		name := stem + hash[:min(len(hash), suffix)]
		if !taken[name] {
			return name
		}
		fmt.Fprint(h, "again")
	}
}

// takenFor is how long the name of a pod that another owner has is not tried again.
const takenFor = 10 * time.Minute

// taken are the names of pods that the next passes do not try, and until when.
func (p *plan) taken(s *snapshot) map[string]time.Time {
	all := maps.Clone(s.known.taken)
	maps.DeleteFunc(all, func(_ string, until time.Time) bool { return !s.Now.Before(until) })
	for _, f := range p.Pass.Failures() {
		if f.Write == nil || f.Write.Verb != write.Create || !apierrors.IsAlreadyExists(f.Err) {
			continue
		}
		if all == nil {
			all = map[string]time.Time{}
		}
		all[f.Object] = s.Now.Add(takenFor)
	}
	return all
}

package daemonset

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset/internal/placement"
	"github.com/kruisekit/kruisekit/eligible"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
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

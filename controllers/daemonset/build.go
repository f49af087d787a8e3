package daemonset

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

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
}

// build returns the pod of each creation. A node whose orphan is adopted waits for the pass that observes the adoption.
func (b *maker) build(creations []workload.Creation) ([][]write.Object, error) {
	s := b.snapshot
	taken := map[string]bool{}
	maps.Copy(taken, s.Taken)
	for _, pod := range s.AllPods() {
		taken[pod.Name] = true
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
	pod := s.NewPod(&s.set.Spec.Template, name, b.labels())
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

// name returns the name of a new pod: that of the attempt before, or one that no pod of the node had.
func (b *maker) name(node string, taken map[string]bool) string {
	const suffix = 10
	name := b.snapshot.known.names[node]
	for again := 0; name == "" || taken[name]; again++ {
		h := fnv.New64a()
		fmt.Fprint(h, b.snapshot.set.UID, node, b.snapshot.Now.UnixNano(), again)
		sum := h.Sum64()
		hash := revision.EncodeSafely(uint32(sum)) + revision.EncodeSafely(uint32(sum>>32))
		name = workloads.StemOf(b.snapshot.set.Name) + "-" + hash[:min(len(hash), suffix)]
	}
	b.plan.names[node] = name
	return name
}

// pending returns the names of the pods whose creation was planned and has not succeeded, by node. A name that a pod of
// another owner has is not tried again.
func (p *plan) pending(s *snapshot) map[string]string {
	all := maps.Clone(p.names)
	for _, node := range s.nodes { // names for nodes that are gone are dropped
		if name := s.known.names[node.Name]; name != "" && all[node.Name] == "" {
			all[node.Name] = name
		}
	}
	exists := map[string]bool{}
	for _, pod := range slices.Concat(s.AllPods(), p.Pass.Pods()) {
		exists[pod.Name] = true
	}
	for _, f := range p.Pass.Failures() {
		if f.Write != nil && f.Write.Verb == write.Create && apierrors.IsAlreadyExists(f.Err) {
			exists[f.Object] = true
		}
	}
	maps.DeleteFunc(all, func(_, name string) bool { return exists[name] })
	return all
}

package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Input is what Compute looks at.
type Input struct {
	// Set with its hashes in its annotations. What it lacks of them is computed.
	Set *appsv1beta1.SidecarSet
	// Revision is the name of the ControllerRevision of the set as it is.
	Revision string
	// Pods that may have the set: all whose Sets name it. Others do no harm.
	Pods []*corev1.Pod
	// Namespaces are the labels of the pods' namespaces, by name. Only sets that select namespaces need them. One that is
	// not there has no label but kubernetes.io/metadata.name.
	Namespaces map[string]map[string]string
	// Gone says of a set that pods tell of whether it has been deleted: what is written about it then goes with the next
	// write. Nil keeps it.
	Gone func(set string) bool
	// May is asked before a pod is planned to be updated. A refusal comes with its reason, and makes room for the next pod.
	// Nil allows all.
	May func(pod *corev1.Pod) (ok bool, why string)
	// Held are the pods whose update was refused, by UID, and until when they let others go first.
	Held map[types.UID]time.Time
	// Now is the time that is recorded on pods.
	Now time.Time
}

// Plan is what to do now. Each part may be carried out without the others; what was not is in the next plan again.
type Plan struct {
	// Mark are conditions of pods that tell whether the set can update them, where they tell otherwise.
	Mark []Mark
	// Flip are the pods whose hot upgrade can end: the container that worked before gets the empty image.
	Flip []Write
	// Update are the pods that get the new images, the first ones first.
	Update []Write
	// Status of the set as the pods are before all this.
	Status appsv1beta1.SidecarSetStatus
	// Revisions are the names of those that matched pods have, sorted.
	Revisions []string
	// Notes say why other pods wait.
	Notes []Note
	// RequeueAfter is when to plan again although nothing has changed; zero for never.
	RequeueAfter time.Duration
}

// Compute says which pods to update now, and why others wait. There may be both a plan and an error: a part of the spec, as a
// *SpecError, or a pod that cannot be dealt with does not keep the others from it.
func Compute(in Input) (Plan, error) {
	p := &planner{in: in}
	if err := p.begin(); err != nil {
		return Plan{Status: p.count()}, err
	}
	p.plan.Status = p.count()
	p.plan.Revisions = p.revisions()
	p.flip()
	switch u := &in.Set.Spec.UpdateStrategy; {
	case u.Type == appsv1beta1.NotUpdateSidecarSetStrategyType:
		p.noteWaiting(NoteNotUpdate, p.old(), "for a set that updates no running pods")
	case u.Paused:
		p.noteWaiting(NotePaused, p.old(), "to be updated: updates are paused")
	default:
		p.choose()
		p.mark()
	}
	return p.plan, errors.Join(p.errs...)
}

// Count is the status of a set, without a plan: after pods were written, of what they have become.
func Count(in Input) (appsv1beta1.SidecarSetStatus, error) {
	p := &planner{in: in}
	err := p.begin()
	return p.count(), err
}

// planner is a plan on its way.
type planner struct {
	in   Input
	plan Plan
	errs []error

	hash, bare string
	sidecars   []container
	// names in the pod of all sidecars.
	names map[string]bool
	// only are the pods that updateStrategy.selector selects; nil until it was read.
	only labels.Selector
	// members are the matched pods, by namespace and name.
	members []*member
}

// container is one of the set, as pods have it.
type container struct {
	name, image string
	// hot containers are two in the pod: first and second, one of them with the empty image.
	hot           bool
	empty         string
	first, second string
}

// begin reads the set and finds its pods.
func (p *planner) begin() error {
	if err := p.hashes(); err != nil {
		return err
	}
	p.sidecars, p.names = containersOf(p.in.Set), map[string]bool{}
	for _, s := range p.sidecars {
		if s.hot {
			p.names[s.first], p.names[s.second] = true, true
			continue
		}
		p.names[s.name] = true
	}
	matches, err := p.matcher()
	if err != nil {
		return err
	}
	for _, pod := range p.in.Pods {
		if matches(pod) {
			if m := p.member(pod); m != nil {
				p.members = append(p.members, m)
			}
		}
	}
	slices.SortFunc(p.members, byName)
	return nil
}

func byName(a, b *member) int {
	return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
}

func (p *planner) hashes() (err error) {
	set := p.in.Set
	p.hash, p.bare = set.Annotations[pub.SidecarSetHashKey], set.Annotations[pub.SidecarSetHashWithoutImageKey]
	if p.hash == "" {
		if p.hash, err = sidecar.Hash(set); err != nil {
			return fmt.Errorf("hash sidecarset %s: %w", set.Name, err)
		}
	}
	if p.bare == "" {
		if p.bare, err = sidecar.HashWithoutImage(set); err != nil {
			return fmt.Errorf("hash sidecarset %s: %w", set.Name, err)
		}
	}
	return nil
}

func containersOf(set *appsv1beta1.SidecarSet) []container {
	all := make([]container, len(set.Spec.Containers))
	for i := range set.Spec.Containers {
		c := &set.Spec.Containers[i]
		all[i] = container{name: c.Name, image: c.Image}
		if c.UpgradeStrategy.UpgradeType == appsv1beta1.SidecarContainerHotUpgrade {
			all[i].hot, all[i].empty = true, c.UpgradeStrategy.HotUpgradeEmptyImage
			all[i].first, all[i].second = sidecar.HotUpgradeNames(c.Name)
		}
	}
	return all
}

// matcher says which pods the set selects, whatever they have of it.
func (p *planner) matcher() (func(*corev1.Pod) bool, error) {
	spec := &p.in.Set.Spec
	if spec.Selector == nil || len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		return func(*corev1.Pod) bool { return false }, nil
	}
	pods, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return nil, &SpecError{Field: "spec.selector", Err: err}
	}
	namespaces := labels.Everything()
	if spec.NamespaceSelector != nil {
		if namespaces, err = metav1.LabelSelectorAsSelector(spec.NamespaceSelector); err != nil {
			return nil, &SpecError{Field: "spec.namespaceSelector", Err: err}
		}
	}
	known := map[string]bool{}
	inNamespace := func(name string) bool {
		is, asked := known[name]
		if !asked {
			set, there := p.in.Namespaces[name]
			if !there {
				set = map[string]string{corev1.LabelMetadataName: name}
			}
			is = namespaces.Matches(labels.Set(set))
			known[name] = is
		}
		return is
	}
	return func(pod *corev1.Pod) bool {
		return isActive(pod) && pods.Matches(labels.Set(pod.Labels)) && inNamespace(pod.Namespace)
	}, nil
}

func isActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// count makes the status of the pods as they are.
func (p *planner) count() appsv1beta1.SidecarSetStatus {
	s := appsv1beta1.SidecarSetStatus{
		ObservedGeneration: p.in.Set.Generation, MatchedPods: int32(len(p.members)),
		LatestRevision: p.in.Revision, CollisionCount: new(int32),
	}
	if n := p.in.Set.Status.CollisionCount; n != nil {
		*s.CollisionCount = *n
	}
	for _, m := range p.members {
		ready := m.ready && m.consistent
		if m.updated {
			s.UpdatedPods++
		}
		if ready {
			s.ReadyPods++
		}
		if ready && m.updated {
			s.UpdatedReadyPods++
		}
	}
	return s
}

// old is how many matched pods have another hash than the set.
func (p *planner) old() int {
	return len(p.members) - int(p.plan.Status.UpdatedPods)
}

func (p *planner) revisions() []string {
	var names []string
	for _, m := range p.members {
		if m.revision != "" {
			names = append(names, m.revision)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

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
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Input is what Plan looks at.
type Input struct {
	// Set with its hashes in its annotations. Missing hashes are computed.
	Set *appsv1beta1.SidecarSet
	// Revision is the name of the ControllerRevision of the set as it is.
	Revision string
	// Pods that may have the set: all whose Sets contain its name. Other pods are ignored.
	Pods []*corev1.Pod
	// Namespaces are the labels of the pods' namespaces, by name. Only sets that select namespaces need them. A namespace
	// that is missing has only the label kubernetes.io/metadata.name.
	Namespaces map[string]map[string]string
	// Held are the pods whose update was refused, by UID, and the time until which other pods take their turn.
	Held map[types.UID]time.Time
	// Now is the time that is recorded on pods.
	Now time.Time
}

// Result is one plan. Each part may be executed without the others; the next plan contains what is missing.
type Result struct {
	// Marks write the conditions that report whether the set can update a pod, where they report otherwise.
	Marks []*Change
	// Resets end the hot upgrades that can end.
	Resets []*Change
	// Updates give pods the new images, in order.
	Updates []*Change
	// Status of the set before these changes.
	Status appsv1beta1.SidecarSetStatus
	// Lacking counts the pods that record the set and lack a container of it. They are not in the status.
	Lacking int
	// Revisions are the names of those that matched pods have, sorted.
	Revisions []string
	// Notes are the reasons why other pods wait.
	Notes []note.Note
	// RequeueAfter is when to plan again although nothing has changed; zero for never.
	RequeueAfter time.Duration
}

// plan decides which pods to update now. There may be both a result and an error: a part of the spec that cannot be
// read, as a *SpecError, or a pod that cannot be read or changed stops no other pod.
func plan(in *Input) (Result, error) {
	p := &planner{in: in}
	if err := p.begin(); err != nil {
		return Result{Status: p.count()}, err
	}
	p.result.Status = p.count()
	p.result.Revisions = p.revisions()
	p.noteWaiting(NoteLacking, p.result.Lacking, "for containers of the set, which only new pods get")
	p.reset()
	switch u := &in.Set.Spec.UpdateStrategy; {
	case u.Type == appsv1beta1.NotUpdateSidecarSetStrategyType:
		p.noteWaiting(NoteNotUpdate, p.old(), "for a set that updates no running pods")
	case u.Paused:
		p.noteWaiting(NotePaused, p.old(), "to be updated: updates are paused")
	default:
		p.choose()
		p.mark()
	}
	return p.result, errors.Join(p.errs...)
}

// planner makes one plan.
type planner struct {
	in     *Input
	result Result
	errs   []error

	hash, bare string
	sidecars   []container
	// names in the pod of all sidecars.
	names map[string]bool
	// only is updateStrategy.selector. A selector that cannot be read selects no pod.
	only labels.Selector
	// members are the matched pods, by namespace and name.
	members []*member
}

// container is a container of the set, as pods have it.
type container struct {
	name, image string
	// hot reports that the pod has two containers, first and second, one of them with the empty image.
	hot           bool
	empty         string
	first, second string
}

// begin reads the set and collects its pods.
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
		if !matches(pod) || !slices.Contains(Sets(pod), p.in.Set.Name) {
			continue
		}
		if m := p.member(pod); m != nil {
			p.members = append(p.members, m)
			continue
		}
		p.result.Lacking++
	}
	slices.SortFunc(p.members, byName)
	return nil
}

func byName(a, b *member) int {
	return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
}

func (p *planner) hashes() (err error) {
	set := p.in.Set
	p.hash, p.bare = set.Annotations[kruise.SidecarSetHashKey], set.Annotations[kruise.SidecarSetHashWithoutImageKey]
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

// matcher returns whether the set selects a pod, whether or not the pod has its containers.
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
	inNamespace := func(name string) bool {
		set, known := p.in.Namespaces[name]
		if !known {
			set = map[string]string{corev1.LabelMetadataName: name}
		}
		return namespaces.Matches(labels.Set(set))
	}
	return func(pod *corev1.Pod) bool {
		return isActive(pod) && pods.Matches(labels.Set(pod.Labels)) && inNamespace(pod.Namespace)
	}, nil
}

func isActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// count returns the status for the pods as they are.
func (p *planner) count() appsv1beta1.SidecarSetStatus {
	s := appsv1beta1.SidecarSetStatus{
		ObservedGeneration: p.in.Set.Generation, MatchedPods: int32(len(p.members)),
		LatestRevision: p.in.Revision, CollisionCount: ptr.To(ptr.Deref(p.in.Set.Status.CollisionCount, 0)),
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

// old returns how many matched pods have another hash than the set.
func (p *planner) old() int {
	return len(p.members) - int(p.result.Status.UpdatedPods)
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

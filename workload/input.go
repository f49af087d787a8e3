package workload

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/write"
)

// Input is a workload as its controller observes it.
type Input struct {
	// Owner is what new pods and revisions get of their owner. It may be empty where Build makes the pods.
	Owner Owner
	// Store makes the update revision the newest one, before all other writes. Where that fails, nothing follows. Stored
	// are the revisions that exist, of which HistoryLimit stay besides those that pods have; the pass deletes the others
	// at the end. Collisions is the collision count for the status. SetHistory sets all of these; nil is for a caller
	// that keeps its revisions in another way.
	Store        *revision.Storage
	Stored       []*appsv1.ControllerRevision
	HistoryLimit int32
	Collisions   *int32
	// Scale holds the time, the limits, the hooks and the order of updates. Plan fills in its Instances.
	Scale scale.Input
	// Instances that exist. Their order does not matter.
	Instances []Instance
	// Members are the pods of each instance, the leader first. Nil where an instance is one pod. A pod of an instance that
	// is no member is deleted.
	Members []Member
	// Group is how the pods of a group go together.
	Group Group
	// Children has instances be objects of another kind; nil for pods.
	Children *Children
	// Update is the revision that instances go to, Current the one that they come from. They are the same where no rollout
	// is under way.
	Update, Current Revision
	// Revisions are the others that pods may still have.
	Revisions []Revision
	// Unlabelled returns the revision, as a label has it, of a pod without the revision label, for pods that another
	// controller creates. Nil for none.
	Unlabelled func(*corev1.Pod) string
	// Layout is where the data of the revisions has its templates; nil for revision.Encode and revision.EncodeRoles.
	Layout *revision.Layout
	// Strategy is how a pod goes from one revision to another.
	Strategy Strategy
	// GraceSeconds pass between taking a pod out of traffic and changing its containers.
	GraceSeconds int32
	// Policy is what may change in a running pod, and how.
	Policy inplace.Policy
	// Build returns, for each creation, the objects to create in this order: those that the pod needs, and the pod last.
	// It leaves out objects that exist and serve the pod, and returns nil for a creation that has to wait, as for the name
	// of a claim that terminates. It is asked once in a pass, and must only depend on its argument and the observation.
	// Nil is for what Input.Pod returns, which a Build of your own changes as it needs.
	Build func([]Creation) ([][]write.Object, error)
	// Before returns what is written before a pod is deleted, as the owner references of objects that must outlast the pod
	// or go with it. As another client may delete a pod at any time, each pass writes it first, for all pods. A pod for
	// which one of these writes fails is not deleted. The writes of an observation that shows them made must be left out.
	// Nil for nothing.
	Before func(*corev1.Pod) []write.Write
	// Ahead returns what comes before the update of a pod. Nil for nothing.
	Ahead func(*corev1.Pod) Ahead
	// First are writes of the caller that come before all others. Their failures stop no other write.
	First []write.Write
	// RevisionLabels are the labels that pods of a revision carry besides the revision label. Pods that lack them get
	// them.
	RevisionLabels func(revision string) map[string]string
	// MayUpdate is asked before each update of an instance, once in a pass, with its leader; nil allows all. A refusal
	// comes with its reason, and ends the updates that begin in the pass, so that their order is kept.
	MayUpdate func(*corev1.Pod) (ok bool, why string)
	// Ask has the pass ask before updates begin, as for a budget that is kept elsewhere: see ActionAsk. MayUpdate is asked
	// first.
	Ask bool
	// Evict has the pass evict the pods of instances rather than delete them, so that PodDisruptionBudgets hold. An
	// eviction that is refused for now is no failure: it ends the updates that begin in the pass, and is asked for again.
	Evict bool
	// Repeats are what Pass.Repeats returned after the pass before. Without them a write that another writer reverts is
	// bounded in each pass alone, and a pass with outdated writes is made again after a second each time.
	Repeats Repeats
	// Restarts are what Pass.Restarts returned after the pass before, as the status of the owner stores them.
	Restarts Restarts
	// KeepState leaves the lifecycle state of a pod alone while the pod is updated in place, as DaemonSet does.
	KeepState bool
	// IgnoreMarks gives the label apps.kruise.io/specified-delete of pods no effect, as DaemonSet does. It is for slots:
	// without these a pass marks the pods that it recreates.
	IgnoreMarks bool
	// NeedsNode keeps a new pod without a preNormal hook from Normal until it is on a node, as CloneSet does.
	NeedsNode bool
}

// Instance is what is scaled as one: a pod, or the pods of a group.
type Instance struct {
	// Name identifies the instance. It is the name of the pod, where there is one.
	Name string
	// Pods that exist, also those that are terminating or have finished.
	Pods []Pod
	// MarkedForDeletion means that the user chose the instance to be deleted. So does the label
	// apps.kruise.io/specified-delete on a pod, unless Input.IgnoreMarks is set.
	MarkedForDeletion bool
	// Outdated means that an update changes something besides the pods, see Input.Ahead, also where these are updated.
	// Impaired means that something besides the pods keeps the instance from serving, so that it spends of the budget of
	// updates. Both are for slots.
	Outdated, Impaired bool
	// NotNow keeps the instance from being updated for now. Others take its turn.
	NotNow bool
	// Recreate means that an update recreates the instance, whatever the Strategy.
	Recreate bool
	// NotInPlace is why no update can change the running pods of the instance, whatever the change: InPlaceIfPossible
	// recreates them, InPlaceOnly reports it. Empty where the change decides.
	NotInPlace string
}

// Pod is a pod of an instance.
type Pod struct {
	*corev1.Pod

	// Member is the name in Input.Members; empty where an instance is one pod.
	Member string

	// Child is the object that the pod stands for, see Children; nil for a pod.
	Child write.Object
}

// Member is one pod of a group.
type Member struct {
	// Name identifies the member in its group.
	Name string
	// Role is the name of its template in the revisions.
	Role string
}

// Revision is one version of the templates.
type Revision struct {
	// Name of the revision.
	Name string
	// Label is the value of the revision label of its pods; empty for the name.
	Label string
	// Data is what revision.Encode or revision.EncodeRoles returned, as a ControllerRevision stores it, or data of
	// Input.Layout.
	Data []byte
	// Fixed identifies what no running pod can change besides the template, such as its volume claims. Pods go in place
	// only between revisions with the same value. An empty value equals any other.
	Fixed string
}

func (r *Revision) label() string { return cmp.Or(r.Label, r.Name) }

func (r *Revision) matches(label string) bool { return revision.Match(r.Name, label) }

// Strategy is how a pod goes from one revision to another.
type Strategy string

const (
	// Recreate deletes the pod, and creates another one. It is the default.
	Recreate Strategy = ""
	// InPlaceIfPossible changes the running pod, and recreates it where that is not possible.
	InPlaceIfPossible Strategy = "InPlaceIfPossible"
	// InPlaceOnly changes the running pod, and fails where that is not possible.
	InPlaceOnly Strategy = "InPlaceOnly"
)

// Creation is a pod to create.
type Creation struct {
	// Instance is the name of an instance that lacks a member; empty for a new instance.
	Instance string
	// Slot is the name of a new instance, where slots are given.
	Slot string
	// Member that the pod becomes; the zero value where an instance is one pod.
	Member Member
	// Revision is the name of the revision that the pod gets.
	Revision string
}

// Pods returns pods as instances of one pod each.
func Pods(pods []*corev1.Pod) []Instance {
	all, backing := make([]Instance, len(pods)), make([]Pod, len(pods))
	for i, pod := range pods {
		backing[i].Pod = pod
		all[i] = Instance{Name: pod.Name, Pods: backing[i : i+1 : i+1]}
	}
	return all
}

// Groups returns pods as the groups that a label names. Another label names the member of each pod.
func Groups(pods []*corev1.Pod, groupLabel, memberLabel string) []Instance {
	var all []Instance
	at := map[string]int{}
	for _, pod := range pods {
		name := pod.Labels[groupLabel]
		k, known := at[name]
		if !known {
			k = len(all)
			at[name], all = k, append(all, Instance{Name: name})
		}
		all[k].Pods = append(all[k].Pods, Pod{Pod: pod, Member: pod.Labels[memberLabel]})
	}
	return all
}

// IsFinished reports whether a pod has finished, as an evicted one, and never runs again.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isTerminating reports whether a pod is about to be gone.
func isTerminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || IsFinished(pod) }

func (in *Input) isMarked(pod *corev1.Pod) bool { return in.Policy.Keys.IsSpecifiedDelete(pod) }

// check returns a *scale.InputError for what cannot work.
func (in *Input) check() error {
	for _, f := range slices.Concat(in.roleRules(), in.childRules(), in.groupRules(), in.restartRules()) {
		if f.broken {
			return &scale.InputError{Field: f.field, Reason: f.reason}
		}
	}
	return nil
}

// rule is what a field must be.
type rule struct {
	field, reason string
	broken        bool
}

func (in *Input) childRules() []rule {
	c := in.Children
	if c == nil {
		return nil
	}
	return []rule{
		{"Members", "must be empty with Children", len(in.Members) > 0},
		{"Build", "must be set with Children", in.Build == nil},
		{"Evict", "must be false with Children", in.Evict},
		{"Scale.Hooks", "must not mark pods not ready with Children", in.marksNotReady()},
		{"Children", "must have Observe and Patch", c.Observe == nil || c.Patch == nil},
	}
}

func (in *Input) groupRules() []rule {
	g := &in.Group
	labelled, named := g.Label != "", in.Scale.Slots != nil && len(in.Members) > 0
	return []rule{
		{"Group.MemberLabel", "must be set where Group.Label is", labelled != (g.MemberLabel != "")},
		{"Group.MemberLabel", "must not be Group.Label", labelled && g.Label == g.MemberLabel},
		{"Group.Label", "must be empty without Slots and Members", labelled && !named},
		{"Group.Blocked", "must be BlockedGroup with a preDelete hook", g.Blocked != BlockedGroup && in.isHeld()},
	}
}

func (in *Input) restartRules() []rule {
	r := &in.Group.Restart
	group, slots, members := r.Policy == RestartGroup, in.Scale.Slots != nil, len(in.Members) > 0
	marks := !in.IgnoreMarks || !members
	return []rule{
		{"Group.Blocked", "must be BlockedGroup with RestartGroup", group && in.Group.Blocked != BlockedGroup},
		{"Group.Restart", "must be empty without Slots and Members", r.isSet() && !slots && !members},
		{"Group.Restart.Policy", "must not be RestartGroup without Slots", group && !slots},
		{"Group.Restart.Policy", "must not be RestartGroup with a preDelete hook", group && in.isHeld()},
		{"Group.Restart.Policy", "must not be RestartPod with IgnoreMarks", r.Policy == RestartPod && !marks},
		{"Group.Restart.Failed", "must be nil with a preDelete hook", r.Failed != nil && in.isHeld()},
	}
}

// marksNotReady reports whether a hook closes the readiness gate of pods.
func (in *Input) marksNotReady() bool {
	hooks := ptr.Deref(in.Scale.Hooks, kruise.Lifecycle{})
	marks := func(hook *kruise.LifecycleHook) bool { return hook != nil && hook.MarkPodNotReady }
	return marks(hooks.PreDelete) || marks(hooks.InPlaceUpdate)
}

// isHeld reports whether a hook holds pods before their deletion.
func (in *Input) isHeld() bool { return in.Scale.Hooks != nil && in.Scale.Hooks.PreDelete != nil }

// roleRules are those of each role, then those of their order. A role is clear once all roles that it follows are.
func (in *Input) roleRules() (rules []rule) {
	roles, each := in.Group.Roles, in.Group.Traffic == TrafficEach
	known, isClear := map[string]bool{}, map[string]bool{}
	for k, r := range roles {
		path, leads := fmt.Sprintf("Group.Roles[%d]", k), len(in.Members) > 0 && in.Members[0].Role == r.Name
		rules = append(rules,
			rule{path + ".Name", fmt.Sprintf("must not be %q twice", r.Name), known[r.Name]},
			rule{path + ".MaxUnavailable", "must be nil without TrafficEach", r.MaxUnavailable != nil && !each},
			rule{path + ".Last", "must be nil without TrafficEach", r.Last != nil && !each},
			rule{path + ".After", "must be empty for the role of the leader", leads && len(r.After) > 0},
		)
		known[r.Name] = true
	}
	blocks := func(name string) bool { return !isClear[name] }
	for range roles {
		for _, r := range roles {
			isClear[r.Name] = isClear[r.Name] || !slices.ContainsFunc(r.After, blocks)
		}
	}
	var cycles []rule
	for k, r := range roles {
		for j, name := range r.After {
			path := fmt.Sprintf("Group.Roles[%d].After[%d]", k, j)
			rules = append(rules, rule{path, fmt.Sprintf("must be a role, and %q is none", name), !known[name]})
			cycle := fmt.Sprintf("must not be %q, which is part of a cycle or follows one", name)
			cycles = append(cycles, rule{path, cycle, blocks(name)})
		}
	}
	return append(rules, cycles...)
}

package cloneset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/note"
)

// Reconciler brings CloneSets to what they ask for.
type Reconciler struct {
	kit     *workloads.Kit
	options Options
	memory  passes.Memory[types.NamespacedName, knowledge]
	// limited are the texts about creation that waits for pods to become available.
	limited passes.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	kit, err := workloads.New("cloneset", c, workloads.Options{
		Kind: gvk(), Binding: binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now},
		Dependents: workloads.DependentOptions{Claims: true, PullJobs: o.PreDownload},
		Scaling:    failedScale, Updating: failedUpdate, Events: events(), Ask: o.Ask, Explain: o.Explain,
	})
	if err != nil {
		return nil, err
	}
	if o.NewID == nil {
		const length = 5
		o.NewID = func() string { return rand.String(length) }
	}
	return &Reconciler{kit: kit, options: o}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	bound, err := r.kit.Controller(ctx, mgr, workloads.Controller{
		Name:    "cloneset-controller",
		Options: o,
		Pods:    workloads.WatchOptions{SkipQuiet: r.options.SkipQuiet, Policy: r.options.policy()},
	})
	if err != nil {
		return err
	}
	return bound.Watches(&corev1.PersistentVolumeClaim{}, owned.By(v1beta1.GroupVersion.Group, kind)).Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const kind = "CloneSet"

// Reconcile brings one CloneSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	return workloads.Reconcile(ctx, r.kit, &s.Observation, workloads.Steps[*plan]{
		Plan:   func() (*plan, error) { return r.options.plan(s) },
		Failed: s.failed,
		Parts:  func(p *plan) workloads.Parts { return r.options.parts(s, p) },
		Begin:  func(p *plan) { r.emitLimit(s, p) },
		End:    func(p *plan) { r.remember(s, p) },
	})
}

// remember keeps the ids of pods whose creation was planned and has not succeeded.
func (r *Reconciler) remember(s *snapshot, p *plan) {
	pending, changed := p.pending(s)
	if changed {
		r.memory.Note(s.Key(), func(k *knowledge) { k.pending = pending })
	}
}

// Options of a Reconciler. The zero value behaves as the reference does with its default feature gates.
type Options struct {
	// Live reads past the cache, to find out whether a write whose answer was lost has happened. SetupWithManager takes
	// the manager's API reader where it is nil.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder driver.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// NewID returns the instance id of a new pod, with which its name ends; nil for five random characters.
	NewID func() string

	// ShortHash writes only the hash of a revision into the label controller-revision-hash.
	ShortHash bool
	// PartitionRollback moves updated pods back when the partition is raised.
	PartitionRollback bool
	// PreparingUpdateIsUpdated counts pods that a hook holds before their update as updated while scaling.
	PreparingUpdateIsUpdated bool
	// ExcludePreparingDelete does not count pods that a hook holds before their deletion, for all CloneSets.
	ExcludePreparingDelete bool
	// RecreateOnClaimChange recreates pods when the volume claim templates of two revisions differ.
	RecreateOnClaimChange bool
	// Installed is what in-place updates find in the cluster; nil for a daemon that restarts containers for their
	// environment, and no resize. Without the daemon, environment variables from labels and annotations stay as they are
	// when these change.
	Installed *inplace.Installation
	// PreDownload has nodes pull the images of an in-place update ahead, with ImagePullJobs, where these are installed.
	PreDownload bool
	// SkipQuiet leaves out changes of pods in nothing that matters to their set, such as the status of one container. It
	// saves passes, not writes.
	SkipQuiet bool
	// Ask is called before updates begin, with their pods in order, and may write, as the guard of budgets does.
	// A *workload.RefusedError admits the first ones; the others are asked for again after a second. Nil for no call.
	Ask func(ctx context.Context, pods []*corev1.Pod) error
	// Explain is called in each pass, after its writes, with why the plan is as it is and what pods wait for: for logs,
	// traces and screens. The context is that of the pass. A rollout that stands still has the same notes in its next
	// pass. The pass waits for the return. Nil for no call.
	Explain func(ctx context.Context, set types.NamespacedName, notes []note.Note)
}

// policy is what CloneSets change in place and how. That any change takes a pod out of traffic is what CloneSet
// promises.
func (o Options) policy() inplace.Policy {
	p := workloads.Policy(o.Installed)
	p.Unready = inplace.UnreadyAlways
	return p
}

// reasonScaleUpLimited is the reason of an event about creation that waits for pods to become available.
const reasonScaleUpLimited = "ScaleUpLimited"

// events are those of the writes, in the words of the reference.
func events() workloads.Events {
	event := func(reason, text string) workloads.Event { return workloads.Event{Reason: reason, Text: text} }
	notCreated := event("FailedCreate", "failed to create pod: %[6]s: %[4]v, pod: %[5]s")
	return workloads.Events{
		CreatePod: workloads.Outcome{
			Succeeded: event("SuccessfulCreate", "succeed to create pod %[1]s"), Failed: notCreated,
		},
		CreateClaim: workloads.Outcome{Failed: notCreated},
		DeletePod: workloads.Outcome{
			Succeeded: event("SuccessfulDelete", "succeed to delete pod %[1]s"),
			Failed:    event("FailedDelete", "failed to delete pod %[1]s: %[4]v"),
		},
		DeleteClaim: workloads.Outcome{Failed: event("FailedDelete", "failed to clean up pvc %[1]s: %[4]v")},
		UpdateInPlace: workloads.Outcome{
			Succeeded: event("SuccessfulUpdatePodInPlace", "successfully update pod %[1]s in-place(revision %[3]s)"),
			Failed:    event("FailedUpdatePodInPlace", "failed to update pod %[1]s in-place: %[4]v"),
		},
		MarkPod: workloads.Outcome{
			Succeeded: event("SuccessfulUpdatePodReCreate",
				"successfully patch pod %[1]s specified-delete for update(revision %[3]s)"),
			Failed: event("FailedUpdatePodReCreate",
				"failed to patch pod specified-delete %[1]s for update(revision %[3]s): %[4]v"),
		},
		ChangeClaim: workloads.Outcome{Failed: event("FailedUpdate", "failed to update pvc %[1]s: %[4]v")},
		Waits:       event("FailedCreate", "failed to create pod: %[4]v, pod: %[1]s"),
	}
}

// emitLimit emits that creation waits for pods to become available; once, as long as nothing changes.
func (r *Reconciler) emitLimit(s *snapshot, p *plan) {
	if !p.Runs(&s.Observation) {
		return
	}
	d, status := p.Pass.Result().Difference, &s.set.Status
	same := d.Create == 0 && status.ObservedGeneration == s.set.Generation && int(status.Replicas) == len(s.Active)
	text := ""
	if d.CreateMissing > d.Create {
		text = fmt.Sprintf(
			"scaleUp is limited because of scaleStrategy.maxUnavailable: %d pods are to be created, %d may be now",
			d.CreateMissing, d.Create)
	}
	if r.limited.Changed(s.Key(), text) && !same {
		r.kit.Warningf(s.set, reasonScaleUpLimited, "%s", text)
	}
}

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	workloads.Observation

	// set with its defaults.
	set *v1beta1.CloneSet
	// nodes by name, where the template spreads pods.
	nodes map[string]map[string]string
	known knowledge
	// taken is why a claim name of an id cannot be used, by the id.
	taken map[string]string
	// handedOver are the claims that belong to a pod that is active, by the UID of the pod: an earlier pass handed them
	// over, and could not delete the pod.
	handedOver map[types.UID][]*corev1.PersistentVolumeClaim
}

// knowledge is what is known of a set besides what the API server stores. It may be lost at any time.
type knowledge struct {
	// pending are the ids of pods whose creation was planned, and has not succeeded, sorted. The next attempt takes the
	// same ids, so that their claims are used, and so that the API server's refusal has the same text.
	pending []string
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, o, err := workloads.Read(ctx, r.kit, name, invalid)
	if set == nil {
		if err == nil {
			r.forget(name)
		}
		return nil, err
	}
	if o.Invalid != nil {
		return &snapshot{Observation: *o, set: set}, nil //nolint:nilerr // the pass refuses the set
	}
	if err := r.kit.Observe(ctx, o, set.Spec.Selector); err != nil {
		return nil, err
	}
	s := &snapshot{Observation: *o, set: set, known: r.memory.Recall(name)}
	if len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0 && int32(len(s.Active)) > *set.Spec.Replicas {
		if s.nodes, err = r.kit.NodeLabels(ctx, s.Active); err != nil {
			return nil, err
		}
	}
	if err := r.observeHandedOver(ctx, s); err != nil {
		return nil, err
	}
	ids := s.known.pending
	if set.Spec.ScaleStrategy.EnablePVCReuse {
		ids = slices.Concat(ids, s.pool(s.Claims).Idle(s.AllPods()))
	}
	s.taken, err = s.pool(s.Claims).Taken(ctx, r.kit.Client, ids)
	return s, err
}

// observeHandedOver reads the claims of active pods that the set does not control.
func (r *Reconciler) observeHandedOver(ctx context.Context, s *snapshot) error {
	s.handedOver = map[types.UID][]*corev1.PersistentVolumeClaim{}
	for pod, names := range s.foreignClaims() {
		for _, name := range names {
			claim, err := stored.Find[corev1.PersistentVolumeClaim](ctx, r.kit.Client, types.NamespacedName{
				Namespace: pod.Namespace, Name: name,
			})
			if err != nil {
				return err
			}
			if claim != nil && claim.DeletionTimestamp == nil && owned.Controls(pod, claim) {
				s.handedOver[pod.UID] = append(s.handedOver[pod.UID], claim)
			}
		}
	}
	return nil
}

// forget drops what is known of a set that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.memory.Forget(name)
	r.limited.Forget(name)
}

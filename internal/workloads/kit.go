package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// Options of a Kit.
type Options struct {
	// Kind is the kind of the workloads, in the version of owner references.
	Kind schema.GroupVersionKind
	// Binding are the clients, the clock and the recorder.
	Binding binding.Options
	// Dependents is what workloads have besides pods and revisions.
	Dependents DependentOptions
	// Stem is the name of the workload that a pod with a name can belong to. Pods without a controller are adopted by it,
	// and so are revisions whose names have it before the hash. Nil for a kind that adopts none.
	Stem func(pod string) (workload string, ok bool)
	// Cut is what Stem returns for the pods of a workload; nil for the name of the workload. See StemOf.
	Cut func(workload string) string
	// Scaling and Updating are the types of the conditions about failed writes.
	Scaling, Updating string
	Events            Events
	// Ask answers the questions of passes, see workload.Input.Ask.
	Ask func(ctx context.Context, pods []*corev1.Pod) error
	// Explain takes the notes of each pass.
	Explain func(ctx context.Context, name types.NamespacedName, notes []note.Note)
}

// Kit is what the reconciler of a kind of workloads reads, writes and remembers with.
type Kit struct {
	*binding.Binding
	*Dependents

	options Options
	memory  passes.Memory[types.NamespacedName, Known]
	emitted passes.Texts[types.NamespacedName]
	// confirmed are the workloads that the cache shows as they are stored.
	confirmed stored.Confirmed
}

// Known is what is known of a workload besides what the API server stores. It may be lost at any time.
type Known struct {
	// Outdated is how many passes in a row were decided upon older objects.
	Outdated int
	// Repeats are the recent writes of pods.
	Repeats workload.Repeats

	rejected rejections
	// pause is how long changes of pods are gathered before the next pass.
	pause time.Duration
	// wait is what the workload waited for at the end of the last pass.
	wait Wait
	// verified is the UID of the workload whose pods were read past the cache since the process started.
	verified types.UID
}

// New returns the kit of one reconciler.
func New(reconciler string, c client.Client, o Options) (*Kit, error) {
	api, err := binding.New(reconciler, c, o.Binding)
	if err != nil {
		return nil, err
	}
	return &Kit{Binding: api, Dependents: NewDependents(api, o.Dependents), options: o}, nil
}

// Setup lets Observe find dependents, and orphans. It must come before the manager starts.
func (k *Kit) Setup(ctx context.Context, mgr ctrl.Manager, controllerName string) error {
	if err := k.Dependents.Setup(ctx, mgr, controllerName); err != nil {
		return err
	}
	if k.options.Stem == nil {
		return nil
	}
	return IndexOrphans(ctx, mgr.GetFieldIndexer(), k.options.Kind.Kind, k.options.Stem)
}

// IndexOrphans lets the kit of a kind find orphans, see Options.Stem.
func IndexOrphans(
	ctx context.Context, indexer client.FieldIndexer, kind string, stem func(pod string) (string, bool),
) error {
	if err := owned.IndexOrphans(ctx, indexer, &corev1.Pod{}, owned.Adopter{Kind: kind, Workload: stem}); err != nil {
		return fmt.Errorf("index orphaned pods: %w", err)
	}
	if err := owned.IndexOrphans(ctx, indexer, &appsv1.ControllerRevision{}, owned.Adopter{
		Kind: kind, Workload: OwnerOfRevision,
	}); err != nil {
		return fmt.Errorf("index orphaned revisions: %w", err)
	}
	return nil
}

// forget drops what is known of a workload that is gone.
func (k *Kit) forget(name types.NamespacedName) {
	k.Forget(name)
	k.memory.Forget(name)
	k.emitted.Forget(name)
	k.confirmed.Forget(name)
}

const (
	// longestPod is how many characters the name of a pod has at most, so that it is a host name.
	longestPod = 63
	// longestStem leaves room for a dash and the ten characters that distinguish pods.
	longestStem = longestPod - 11
)

// OwnerOfRevision is the part of a name before the last dash: the name of the workload of a revision.
func OwnerOfRevision(name string) (string, bool) {
	dash := strings.LastIndexByte(name, '-')
	return name[:max(dash, 0)], dash > 0
}

// StemOf is what the names of pods of a workload begin with, before a dash: the name of the workload, or its first
// characters. A dot is left out where the dash would follow it.
func StemOf(name string) string {
	return strings.TrimRight(name[:min(len(name), longestStem)], ".")
}

// OwnerOfPod is the stem in the name of a pod, see StemOf. A name of the full length may have more of the name of the
// workload, and no dash: the API server generates such names.
func OwnerOfPod(pod string) (string, bool) {
	if len(pod) == longestPod {
		return StemOf(pod), true
	}
	name, ok := OwnerOfRevision(pod)
	return StemOf(name), ok
}

// AnnotatedStrategy returns the tuning of a pre-download that the annotations of a workload have. A field is read where
// its annotation is missing or cannot be parsed. A percentage is one of the replicas.
func AnnotatedStrategy(
	fields *kruise.InPlaceUpdateStrategy, annotations map[string]string, replicas int32,
) kruise.InPlaceUpdateStrategy {
	tuning := ptr.Deref(fields, kruise.InPlaceUpdateStrategy{})
	if n, err := strconv.ParseInt(annotations[kruise.ImagePreDownloadParallelismKey], 10, 32); err == nil && n > 0 {
		tuning.ImagePreDownloadParallelism = ptr.To(intstr.FromInt32(int32(n)))
	}
	if n, err := strconv.ParseInt(annotations[kruise.ImagePreDownloadTimeoutSecondsKey], 10, 32); err == nil && n > 0 {
		tuning.ImagePreDownloadTimeoutSeconds = ptr.To(int32(n))
	}
	if text := annotations[kruise.ImagePreDownloadMinUpdatedReadyPodsKey]; text != "" {
		amount := intstr.Parse(text)
		if n, err := scale.AmountOr(&amount, 0, replicas, scale.RoundUp); err == nil {
			tuning.ImagePreDownloadMinUpdatedReadyPods = ptr.To(n)
		}
	}
	return tuning
}

const (
	// mostPods is how many pods a pass builds at most, and mostBytes what they take in memory, by an estimate. leastPods
	// are built of the largest template.
	mostPods  = 512
	mostBytes = 64 << 20
	leastPods = 8
)

// MaxCreations returns how many pods of a workload one pass builds: the next pass goes on. A typing error in a number
// of replicas, or a template as large as an API server stores, must not take the memory of the manager, which holds the
// pods until their creations are answered.
func MaxCreations(creations int, spec any) int {
	if creations <= leastPods {
		return creations
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return leastPods
	}
	return min(creations, mostPods, max(leastPods, mostBytes/(2*len(text))))
}

// DependentOptions say what a workload has besides pods and revisions.
type DependentOptions struct {
	// Claims means that pods have volume claims of their own.
	Claims bool
	// Successors means that a pod must not be created before another one is gone. A pod whose deletion the cache does not
	// show yet is observed as one that terminates; otherwise it is left out.
	Successors bool
	// PullJobs means that nodes pull images ahead of updates.
	PullJobs bool
}

// Dependents reads and writes the dependents of all workloads of a kind.
type Dependents struct {
	DependentOptions

	api       *binding.Binding
	pods      *ledger.Ledger[*corev1.Pod]
	claims    *ledger.Ledger[*corev1.PersistentVolumeClaim]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	jobs      *ledger.Ledger[*metav1.PartialObjectMetadata]
}

// NewDependents returns the dependents of the workloads of one reconciler.
func NewDependents(api *binding.Binding, o DependentOptions) *Dependents {
	return &Dependents{
		DependentOptions: o, api: api,
		pods:      stored.NewPodWrites(api.Live, api.Now),
		claims:    ledger.New[*corev1.PersistentVolumeClaim](api.Live, api.Now),
		revisions: ledger.New[*appsv1.ControllerRevision](api.Live, api.Now),
		jobs:      ledger.New[*metav1.PartialObjectMetadata](api.Live, api.Now),
	}
}

// Setup lets Observe find dependents by their owner. Pull jobs are left out where they are not installed. It must come
// before the manager starts.
func (d *Dependents) Setup(ctx context.Context, mgr ctrl.Manager, controllerName string) error {
	if d.PullJobs {
		installed, err := binding.Installed(mgr.GetRESTMapper(), pullJobKind())
		if err != nil {
			return err
		}
		if d.PullJobs = installed; !installed {
			mgr.GetLogger().Info("Disabled the pre-download of images, ImagePullJobs are not installed",
				"controller", controllerName)
		}
	}
	return d.index(ctx, mgr.GetFieldIndexer())
}

func (d *Dependents) index(ctx context.Context, indexer client.FieldIndexer) error {
	kinds := []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}}
	if d.Claims {
		kinds = append(kinds, &corev1.PersistentVolumeClaim{})
	}
	if d.PullJobs {
		kinds = append(kinds, PullJobMetadata(&v1beta1.ImagePullJob{}))
	}
	for _, object := range kinds {
		if err := owned.Index(ctx, indexer, object); err != nil {
			return fmt.Errorf("index %T: %w", object, err)
		}
	}
	return nil
}

// Forget drops the writes of a workload that is gone.
func (d *Dependents) Forget(owner types.NamespacedName) {
	d.pods.Forget(owner)
	d.claims.Forget(owner)
	d.revisions.Forget(owner)
	d.jobs.Forget(owner)
}

// Ledgers record the writes of all that workloads have.
func (d *Dependents) Ledgers() []driver.Recorder {
	return []driver.Recorder{d.pods, d.claims, d.revisions, pullJobs{Ledger: d.jobs}}
}

// NamedClaims reads claims by their names, those that terminate included, as the own writes left them. It is for a
// workload that does not control its claims, so that no index by owner finds them. recheckAfter is when to look again;
// zero for never.
func (d *Dependents) NamedClaims(
	ctx context.Context, owner types.NamespacedName, names []string,
) (claims map[string]*corev1.PersistentVolumeClaim, recheckAfter time.Duration, err error) {
	cached := make([]*corev1.PersistentVolumeClaim, 0, len(names))
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
		claim := &corev1.PersistentVolumeClaim{}
		switch err := d.api.Client.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: name}, claim,
			&client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, 0, fmt.Errorf("get claim %s: %w", name, err)
		default:
			cached = append(cached, claim)
		}
	}
	all, recheckAfter, err := d.claims.Overlay(ctx, owner, cached)
	if err != nil {
		return nil, 0, fmt.Errorf("read claims: %w", err)
	}
	claims = make(map[string]*corev1.PersistentVolumeClaim, len(all))
	for _, claim := range all {
		if wanted[claim.Name] {
			claims[claim.Name] = claim
		}
	}
	return claims, recheckAfter, nil
}

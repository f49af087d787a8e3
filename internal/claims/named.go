package claims

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Named are the claims of a workload whose pods have ordinals. The next pod of an ordinal gets the claims of the one
// before.
type Named struct {
	// Namespace and Workload are the names of the workload.
	Namespace, Workload string
	// Templates of the claims of one pod.
	Templates []corev1.PersistentVolumeClaim
	// Labels of new claims come on top of those of the templates.
	Labels map[string]string
	// Retention is what claims are deleted with. Nil leaves their owner references alone.
	Retention *Retention
	// Have are the claims that exist, by name, those that terminate included.
	Have map[string]*corev1.PersistentVolumeClaim
	// Classes are the storage classes of claims that are to grow.
	Classes Classes
}

// Names returns the names of the claims of ordinals.
func (n *Named) Names(ordinals iter.Seq[int32]) []string {
	if len(n.Templates) == 0 {
		return nil
	}
	var names []string
	for ordinal := range ordinals {
		for i := range n.Templates {
			names = append(names, n.name(i, ordinal))
		}
	}
	return names
}

func (n *Named) name(template int, ordinal int32) string {
	return Name(n.Templates[template].Name, n.Workload, strconv.Itoa(int(ordinal)))
}

// Of are the claims of an ordinal that exist with their templates, in the order of these.
func (n *Named) Of(ordinal int32) iter.Seq2[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim] {
	return func(yield func(claim, template *corev1.PersistentVolumeClaim) bool) {
		for i := range n.Templates {
			claim := n.Have[n.name(i, ordinal)]
			if claim != nil && !yield(claim, &n.Templates[i]) {
				return
			}
		}
	}
}

// Missing returns the claims of an ordinal that do not exist.
func (n *Named) Missing(ordinal int32) []write.Object {
	var missing []write.Object
	for i := range n.Templates {
		if n.Have[n.name(i, ordinal)] != nil {
			continue
		}
		identity := Identity{Namespace: n.Namespace, Workload: n.Workload, Pod: strconv.Itoa(int(ordinal)), Labels: n.Labels}
		if n.Retention != nil && n.Retention.WithWorkload {
			identity.Owners = []metav1.OwnerReference{n.Retention.Workload}
		}
		missing = append(missing, New(&n.Templates[i], identity))
	}
	return missing
}

// Codes of notes about pods that wait for claims.
const (
	NoteTerminates = "ClaimTerminates"
	NoteStale      = "ClaimStale"
)

// Wait is why a pod of an ordinal cannot be created now; nil where its claims allow it.
func (n *Named) Wait(pod string, ordinal int32) *note.Note {
	for claim := range n.Of(ordinal) {
		wait := &note.Note{Level: note.Waiting, Object: pod}
		switch {
		case claim.DeletionTimestamp != nil:
			wait.Code, wait.Text = NoteTerminates, fmt.Sprintf("claim %s is to be deleted", claim.Name)
			return wait
		case n.Retention != nil && n.Retention.WithPod && IsLeftOver(claim, pod):
			wait.Code, wait.Text = NoteStale, fmt.Sprintf("claim %s belongs to an earlier pod %s, and is deleted with it",
				claim.Name, pod)
			return wait
		}
	}
	return nil
}

// Refer returns the patches that give the claims of a pod their owners. unwanted means that no pod of the ordinal is to
// be.
func (n *Named) Refer(pod *corev1.Pod, ordinal int32, unwanted bool) []write.Write {
	if n.Retention == nil {
		return nil
	}
	byPod := unwanted && n.Retention.WithPod
	var writes []write.Write
	for claim := range n.Of(ordinal) {
		writes = append(writes,
			Own(claim, Owner{n.Retention.Workload, n.Retention.WithWorkload && !byPod}, Owner{PodRef(pod), byPod})...)
	}
	return writes
}

// PodFit is how the claims of a pod compare with their templates.
type PodFit struct {
	// Outdated means that a claim is smaller than its template, or grows.
	Outdated bool
	// Grows means that the volume of a claim grows.
	Grows bool
	// Remounts means that a volume grows only when another pod mounts it. RemountsAfter is when to look at that again;
	// zero for never.
	Remounts      bool
	RemountsAfter time.Duration
}

// isFixed reports whether a claim cannot grow now: it terminates, or it is not bound, and API servers forbid any change
// of its spec until then. It may need another pod to be bound, so that no update waits for it.
func isFixed(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp != nil || claim.Status.Phase != "" && claim.Status.Phase != corev1.ClaimBound
}

// Fit compares the claims of a pod with their templates. Claims that cannot grow now are left alone.
func (n *Named) Fit(pod *corev1.Pod, ordinal int32, now time.Time) PodFit {
	var all PodFit
	for claim, template := range n.Of(ordinal) {
		if isFixed(claim) {
			continue
		}
		fit := Compare(claim, template)
		remounts, after := fit.NeedsRemount(pod, now)
		all.Outdated = all.Outdated || !fit.Complete()
		all.Grows = all.Grows || fit.Alike && !fit.Grown
		all.Remounts, all.RemountsAfter = all.Remounts || remounts, passes.Sooner(all.RemountsAfter, after)
	}
	return all
}

// Ahead returns what comes before the update of the pod of an ordinal: its claims grow.
func (n *Named) Ahead(ordinal int32) workload.Ahead {
	var ahead workload.Ahead
	for claim, template := range n.Of(ordinal) {
		fit := Compare(claim, template)
		if isFixed(claim) || fit.Complete() {
			continue
		}
		ahead.Wait = fmt.Sprintf("the volume of claim %s is to grow", claim.Name)
		if fit.Compatible {
			continue
		}
		expand, err := Expand(claim, template, n.Workload, n.Classes)
		if err != nil {
			return workload.Ahead{Err: err}
		}
		ahead.Writes = append(ahead.Writes, expand)
	}
	return ahead
}

// ReadClasses reads the storage classes of the claims of ordinals that are to grow.
func (n *Named) ReadClasses(ctx context.Context, from client.Reader, ordinals iter.Seq[int32]) error {
	n.Classes = Classes{}
	for ordinal := range ordinals {
		for claim, template := range n.Of(ordinal) {
			name := ptr.Deref(claim.Spec.StorageClassName, "")
			if _, known := n.Classes[name]; known || name == "" || Compare(claim, template).Compatible {
				continue
			}
			class, err := stored.Find[storagev1.StorageClass](ctx, from, types.NamespacedName{Name: name})
			if err != nil {
				return err
			}
			n.Classes[name] = class
		}
	}
	return nil
}

// Status counts the claims of ordinals, by template.
func (n *Named) Status(ordinals iter.Seq[int32]) []v1beta1.VolumeClaimStatus {
	all := make([]v1beta1.VolumeClaimStatus, len(n.Templates))
	for i := range n.Templates {
		all[i].VolumeClaimName = n.Templates[i].Name
	}
	for ordinal := range ordinals {
		for i := range n.Templates {
			claim := n.Have[n.name(i, ordinal)]
			if claim == nil {
				continue
			}
			fit := Compare(claim, &n.Templates[i])
			if fit.Compatible {
				all[i].CompatibleReplicas++
			}
			if fit.Ready() {
				all[i].CompatibleReadyReplicas++
			}
		}
	}
	return all
}

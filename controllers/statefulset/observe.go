package statefulset

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/dependents"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ordinals"
	"github.com/kruisekit/kruisekit/workload"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	dependents.Observed

	// set with its defaults.
	set      *v1beta1.StatefulSet
	selector labels.Selector
	// invalid is why nothing can be done with the spec, reported what of the spec is invalid and has a safe reading.
	invalid, reported error
	now               time.Time
	window            ordinals.Window
	// claims of slots and of pods, by name, those that terminate included.
	claims map[string]*corev1.PersistentVolumeClaim
	// orphans are pods without a controller that the set adopts.
	orphans []*corev1.Pod
	// taken are the names of pods that the set does not control.
	taken map[string]bool
	known knowledge
}

// knowledge is what is known of a set beside what the API server stores. It may be lost at any time.
type knowledge struct {
	// outdated is how many passes in a row were decided upon older objects.
	outdated int
	// repeats are the recent writes of pods.
	repeats workload.Repeats
	// failures are the messages of the conditions of failures in the last status that was written, by their type. The cache may
	// still show the status from before.
	failures map[string]string
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, malformed, err := stored.Read[v1beta1.StatefulSet](ctx, r.api.Cached, gvk(), name)
	if apierrors.IsNotFound(err) {
		r.forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &snapshot{set: set, now: r.api.Now(), invalid: malformed, known: r.memory.Recall(name)}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	set.Default()
	if s.invalid, s.reported = invalid(set); s.invalid != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	if s.selector, err = metav1.LabelSelectorAsSelector(set.Spec.Selector); err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	if s.window, err = r.options.window(set); err != nil {
		return nil, err
	}
	selects := s.selector
	if set.DeletionTimestamp != nil {
		selects = labels.Everything() // no pod of a set that is deleted is released
	}
	observed, err := r.dependents.Observe(ctx, set, selects)
	if err != nil {
		return nil, err
	}
	s.Observed = *observed
	if set.DeletionTimestamp != nil {
		return s, nil
	}
	s.releaseMisnamed()
	if err := r.observeOrphans(ctx, s); err != nil {
		return nil, err
	}
	var recheckAfter time.Duration
	s.claims, recheckAfter, err = r.dependents.NamedClaims(ctx, name, s.claimNames())
	s.RecheckAfter = requeue.Sooner(s.RecheckAfter, recheckAfter)
	return s, err
}

// window is the ordinals that a set wants.
func (o Options) window(set *v1beta1.StatefulSet) (ordinals.Window, error) {
	reserved, err := ordinals.Parse(set.Spec.ReserveOrdinals)
	w := ordinals.Window{Replicas: *set.Spec.Replicas, Reserved: reserved}
	if o.StartOrdinal && set.Spec.Ordinals != nil {
		w.Start = set.Spec.Ordinals.Start
	}
	return w, err
}

// releaseMisnamed has pods released whose names are not those of pods of the set.
func (s *snapshot) releaseMisnamed() {
	misnamed := func(pod *corev1.Pod) bool { _, ok := s.ordinal(pod.Name); return !ok }
	for _, pods := range []*[]*corev1.Pod{&s.Active, &s.Inactive} {
		for _, pod := range *pods {
			if misnamed(pod) && pod.DeletionTimestamp == nil {
				s.Unselected = append(s.Unselected, pod)
			}
		}
		*pods = slices.DeleteFunc(*pods, misnamed)
	}
}

// ordinal is that of a pod of the set, and reports whether a pod of this name can belong to the set.
func (s *snapshot) ordinal(pod string) (int32, bool) {
	set, ordinal, ok := ordinals.Split(pod)
	return ordinal, ok && set == s.set.Name
}

// wanted reports whether the set wants the ordinal of a pod.
func (s *snapshot) wanted(pod string) bool {
	ordinal, ok := s.ordinal(pod)
	return ok && s.window.Contains(ordinal)
}

// claimNames are the names of the claims of all slots and of all pods.
func (s *snapshot) claimNames() []string {
	templates := s.set.Spec.VolumeClaimTemplates
	if len(templates) == 0 {
		return nil
	}
	var names []string
	add := func(ordinal int32) {
		for i := range templates {
			names = append(names, claims.Name(templates[i].Name, s.set.Name, strconv.Itoa(int(ordinal))))
		}
	}
	for ordinal := range s.window.All() {
		add(ordinal)
	}
	for _, pod := range slices.Concat(s.Active, s.Inactive) {
		if ordinal, _ := s.ordinal(pod.Name); !s.window.Contains(ordinal) {
			add(ordinal)
		}
	}
	return names
}

// observeOrphans finds the pods to adopt. An adoption follows a live read of the set: the cache may show a set that is gone, and whose pods
// were left to another one of its name.
func (r *Reconciler) observeOrphans(ctx context.Context, s *snapshot) error {
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list, append(owned.Orphans(s.set.Namespace, s.set.Name), client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("read orphans: %w", err)
	}
	s.taken = map[string]bool{}
	for _, pod := range s.Unselected {
		s.taken[pod.Name] = true
	}
	for _, pod := range stored.Pointers(list.Items) {
		own := slices.ContainsFunc(s.AllPods(), func(p *corev1.Pod) bool { return p.UID == pod.UID })
		if own {
			continue
		}
		s.taken[pod.Name] = true
		if pod.DeletionTimestamp == nil && s.selector.Matches(labels.Set(pod.Labels)) && metav1.GetControllerOfNoCopy(pod) == nil {
			s.orphans = append(s.orphans, pod)
		}
	}
	if len(s.orphans) == 0 {
		return nil
	}
	live, err := stored.Metadata(ctx, r.api.Live, gvk(), s.key())
	if err != nil {
		return err
	}
	if live == nil || live.UID != s.set.UID || live.DeletionTimestamp != nil {
		s.orphans = nil
	}
	return nil
}

// forget drops what is known of a set that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.dependents.Forget(name)
	r.memory.Forget(name)
	r.emitted.Forget(name)
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.set) }

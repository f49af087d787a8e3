package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar"
)

// SidecarOptions are the options of the step that injects SidecarSets.
type SidecarOptions struct {
	// Namespace is the manager's own, which has the revisions of sets. Default kruise-system.
	Namespace string
	// SortContainers puts injected containers in the order of their names.
	SortContainers bool
}

// sidecars is the step that injects SidecarSets.
type sidecars struct {
	lookups SidecarLookups
	options SidecarOptions
	// absent has what a live read did not find, and for the set of a mark the first and the last such read.
	absent *cache.LRUExpireCache
}

const (
	// absentTTL is how long what was not found is not read again. For settles before that, each pod may be the first
	// after the set of a mark.
	absentTTL = time.Second
	settles   = 2 * time.Second
	markTTL   = 5 * time.Second
	maxAbsent = 1000
)

// Sidecars returns the step that injects SidecarSets.
func Sidecars(l SidecarLookups, o SidecarOptions) (Step, error) {
	if l.Sets == nil || l.Namespaces == nil || l.Revisions == nil {
		return Step{}, errors.New("lookups of sets, namespaces and revisions are required")
	}
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	s := &sidecars{lookups: l, options: o, absent: cache.NewLRUExpireCache(maxAbsent)}
	return Step{Name: scope.Sidecars().Step, Ready: l.ready, Apply: s.apply}, nil
}

// round is one pod in the step.
type round struct {
	Request
	// warnings for the client that creates the pod, and lacking the number of sets that are left out.
	warnings []string
	lacking  int
	// namespace is that of the pod once it was looked up.
	namespace *corev1.Namespace
}

func (s *sidecars) apply(ctx context.Context, request Request) (Result, error) {
	r := &round{Request: request}
	after, err := s.injectAll(ctx, r)
	return Result{Pod: after, Warnings: r.warnings, Lacking: r.lacking}, invalidSet(err)
}

// invalidSet names the set and the field in an error about a set that is invalid.
func invalidSet(err error) error {
	var broken *sidecar.FieldError
	if !errors.As(err, &broken) {
		return err
	}
	at := field.NewPath("sidecarsets").Key(broken.Set).String() + "." + broken.Field
	return &InvalidError{
		Err:    err,
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: at, Message: broken.Err.Error()}},
	}
}

// injectAll injects every set that selects the pod. It leaves out sets that fail and that the pod may lack.
func (s *sidecars) injectAll(ctx context.Context, r *round) (*corev1.Pod, error) {
	if err := s.lookups.ready(ctx); err != nil {
		return nil, &LookupError{What: "sidecarsets", Err: err}
	}
	candidates, err := s.candidates(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		return nil, nil //nolint:nilnil // nothing to do
	}
	slices.SortFunc(candidates, func(a, b *sidecar.Set) int { return strings.Compare(a.Name(), b.Name()) })
	injection, err := s.inject(ctx, r, candidates)
	if err != nil && ctx.Err() == nil {
		injection, err = s.injectRequired(ctx, r, candidates)
	}
	if err != nil {
		return nil, err
	}
	r.warn(injection.Notes)
	return injection.Pod, nil
}

// injectRequired injects the sets that the pod must have, and each other set that can be added to them.
func (s *sidecars) injectRequired(ctx context.Context, r *round, all []*sidecar.Set) (sidecar.Injection, error) {
	isOptional := func(set *sidecar.Set) bool { return scope.Ignores(set.Object()) }
	sets := slices.DeleteFunc(slices.Clone(all), isOptional)
	injection, err := s.inject(ctx, r, sets)
	if err != nil {
		return injection, err
	}
	for _, set := range all {
		if !isOptional(set) {
			continue
		}
		more, err := s.inject(ctx, r, append(slices.Clip(sets), set))
		if err != nil {
			r.leaveOut(set.Name(), err)
			continue
		}
		injection, sets = more, append(sets, set)
	}
	return injection, nil
}

// misses are when live reads did not find the set of a mark.
type misses struct{ first, last time.Time }

// candidates returns the sets that might select the pod. A set of a provisional entry that the index lacks is read from
// the API server; it is not added to the index, which may have seen the deletion of the set already.
func (s *sidecars) candidates(ctx context.Context, r *round) ([]*sidecar.Set, error) {
	found := s.lookups.Sets.Candidates(r.Pod.Labels)
	mark, is := scope.ReadMark(r.Path)
	if !is || s.lookups.Sets.has(mark) {
		return found, nil
	}
	last := misses{first: r.Now}
	if known, is := s.absent.Get(mark); is {
		last, _ = known.(misses)
		if r.Now.Sub(last.first) >= settles && r.Now.Sub(last.last) < absentTTL {
			return found, nil
		}
	}
	set, err := s.lookups.newSet(ctx, mark.Set)
	if err == nil && (set == nil || !mark.In(set.Object())) {
		s.absent.Add(mark, misses{last.first, r.Now}, markTTL)
	}
	var broken *sidecar.FieldError
	var unread *LookupError
	switch {
	case mark.Open && errors.As(err, &broken):
		r.leaveOut(mark.Set, err)
	case errors.As(err, &unread): // the entry is ignored until the set can be read
		r.leaveOut(mark.Set, err)
		return found, nil
	case err != nil || set == nil:
		return found, err
	}
	found = slices.DeleteFunc(found, func(other *sidecar.Set) bool { return other.Name() == mark.Set })
	if set == nil {
		return found, nil
	}
	return append(found, set), nil
}

// leaveOut warns that the pod is created without a set.
func (r *round) leaveOut(set string, why error) {
	r.lacking++
	r.warnings = append(r.warnings, fmt.Sprintf("sidecarset %s is left out: %v", set, why))
}

func (s *sidecars) inject(ctx context.Context, r *round, candidates []*sidecar.Set) (sidecar.Injection, error) {
	namespace, err := s.namespace(ctx, r, candidates)
	if err != nil {
		return sidecar.Injection{}, err
	}
	selection, err := sidecar.Select(r.Pod, namespace, candidates)
	if err != nil {
		return sidecar.Injection{}, err
	}
	if err := s.lookups.Sets.usable(selection.Sets); err != nil {
		return sidecar.Injection{}, err
	}
	for i, set := range selection.Sets {
		if set.Pinned() {
			if selection.Sets[i], err = s.resolve(ctx, r, set); err != nil {
				return sidecar.Injection{}, err
			}
		}
	}
	return sidecar.Inject(r.Pod, selection.Sets, sidecar.Options{Now: r.Now, SortContainers: s.options.SortContainers})
}

// namespace returns that of the pod, which it looks up once, if a set selects by its labels.
func (s *sidecars) namespace(ctx context.Context, r *round, sets []*sidecar.Set) (*corev1.Namespace, error) {
	if !slices.ContainsFunc(sets, func(set *sidecar.Set) bool { return set.Object().Spec.NamespaceSelector != nil }) {
		return nil, nil //nolint:nilnil // no set selects by its labels
	}
	if r.namespace == nil {
		var err error
		if r.namespace, err = s.lookups.namespace(ctx, r.Namespace); err != nil {
			return nil, &LookupError{What: "namespace " + r.Namespace, Err: err}
		}
	}
	return r.namespace, nil
}

// gotBefore returns the revision of a set that is recorded on a pod with injected containers.
func gotBefore(pod *corev1.Pod, set string) (revision string, ok bool) {
	isInjected := func(c corev1.Container) bool { return sidecar.IsInjected(&c) }
	if !slices.ContainsFunc(pod.Spec.Containers, isInjected) && !slices.ContainsFunc(pod.Spec.InitContainers, isInjected) {
		return "", false
	}
	recorded, _ := sidecar.ReadInjected(pod.Annotations[kruise.SidecarSetHashKey]) // else it has none
	entry, ok := recorded[set]
	return entry.ControllerRevision, ok
}

// warn warns of what was replaced, what is missing, and what the API server will reject.
func (r *round) warn(notes []note.Note) {
	for _, n := range notes {
		switch n.Code {
		case sidecar.NoteVolumeKept:
			if _, before := gotBefore(r.Pod, n.Object); before {
				continue // the volume is the set's own, with defaults
			}
			fallthrough
		case sidecar.NoteReplaced, sidecar.NoteAnnotationReplaced, sidecar.NoteVolumeMissing, sidecar.NoteAboveLimit:
			r.warnings = append(r.warnings, fmt.Sprintf("sidecarset %s: %s", n.Object, n.Text))
		}
	}
}

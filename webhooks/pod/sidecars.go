package pod

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	lookups  SidecarLookups
	options  SidecarOptions
	restored restorations
	absent   absences
	marks    marks
}

// Sidecars returns the step that injects SidecarSets.
func Sidecars(l SidecarLookups, o SidecarOptions) (Step, error) {
	if l.Sets == nil || l.Namespaces == nil || l.Revisions == nil {
		return Step{}, errors.New("lookups of sets, namespaces and revisions are required")
	}
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	s := &sidecars{lookups: l, options: o}
	return Step{Name: scope.Sidecars().Step, Ready: l.ready, Apply: s.apply}, nil
}

// round is one pod in the step.
type round struct {
	Request
	// warnings for the client that creates the pod, and lacking the number of sets that are left out.
	warnings []string
	lacking  int
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

// injectAll injects every set that selects the pod. It leaves out a set that fails and that the pod may lack.
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
	for {
		injection, err := s.inject(ctx, r, candidates)
		if err == nil {
			r.warn(injection.Notes)
			return injection.Pod, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		out := blamed(candidates, err)
		if out < 0 || !scope.Ignores(candidates[out].Object()) {
			return s.injectRequired(ctx, r, candidates, err)
		}
		r.leaveOut(candidates[out].Name(), err)
		candidates = slices.Delete(candidates, out, out+1)
	}
}

// candidates returns the sets that might select the pod. A set of a provisional entry that the index lacks is read from
// the API server; it is not added to the index, which may have seen the deletion of the set already.
func (s *sidecars) candidates(ctx context.Context, r *round) ([]*sidecar.Set, error) {
	found := s.lookups.Sets.Candidates(r.Namespace, r.Pod.Labels)
	mark, is := scope.ReadMark(r.Path)
	if !is || s.lookups.Sets.has(mark) || s.marks.over(mark, r.Now) {
		return found, nil
	}
	set, err := s.lookups.newSet(ctx, mark.Set)
	if err == nil && (set == nil || !mark.In(set.Object())) {
		s.marks.missed(mark, r.Now)
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

// blamed returns the set that an error is about; -1 if it is about none.
func blamed(sets []*sidecar.Set, err error) int {
	var broken *sidecar.FieldError
	var lookup *setLookupError
	name := ""
	switch {
	case errors.As(err, &lookup):
		name = lookup.set
	case errors.As(err, &broken):
		name = broken.Set
	}
	return slices.IndexFunc(sets, func(set *sidecar.Set) bool { return set.Name() == name })
}

// injectRequired retries without sets that the pod may lack, because the one that fails may conflict with them: without
// each of them, and then without all.
func (s *sidecars) injectRequired(ctx context.Context, r *round, sets []*sidecar.Set, why error) (*corev1.Pod, error) {
	var may, must []*sidecar.Set
	for _, set := range sets {
		if scope.Ignores(set.Object()) {
			may = append(may, set)
		} else {
			must = append(must, set)
		}
	}
	for i := range may {
		rest := slices.DeleteFunc(slices.Clone(sets), func(set *sidecar.Set) bool { return set == may[i] })
		if injection, err := s.inject(ctx, r, rest); err == nil {
			r.leaveOut(may[i].Name(), why)
			r.warn(injection.Notes)
			return injection.Pod, nil
		}
	}
	if len(may) > 1 {
		if injection, err := s.inject(ctx, r, must); err == nil {
			for _, set := range may {
				r.leaveOut(set.Name(), why)
			}
			r.warn(injection.Notes)
			return injection.Pod, nil
		}
	}
	return nil, why
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

// namespace returns that of the pod, if a set selects by its labels.
func (s *sidecars) namespace(ctx context.Context, r *round, sets []*sidecar.Set) (*corev1.Namespace, error) {
	for _, set := range sets {
		if set.Object().Spec.NamespaceSelector == nil {
			continue
		}
		if selects, err := sidecar.MatchesPod(set.Object(), r.Pod); err == nil && !selects {
			continue
		}
		namespace, err := s.lookups.namespace(ctx, r.Namespace)
		if err != nil {
			return nil, &setLookupError{set.Name(), &LookupError{What: "namespace " + r.Namespace, Err: err}}
		}
		return namespace, nil
	}
	return nil, nil //nolint:nilnil // no set selects by its labels
}

// gotBefore returns the revision of a set that is recorded on a pod with injected containers.
func gotBefore(pod *corev1.Pod, set string) (revision string, is bool) {
	text := pod.Annotations[kruise.SidecarSetHashKey]
	if text == "" || !strings.Contains(text, set) || !injected(pod.Spec.Containers) && !injected(pod.Spec.InitContainers) {
		return "", false
	}
	recorded := map[string]struct {
		ControllerRevision string `json:"controllerRevision"`
	}{}
	if json.Unmarshal([]byte(text), &recorded) != nil {
		return "", false
	}
	entry, is := recorded[set]
	return entry.ControllerRevision, is
}

func injected(containers []corev1.Container) bool {
	return slices.ContainsFunc(containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.Name == kruise.SidecarInjectedEnvName && e.Value == "true"
		})
	})
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

// setLookupError is a lookup that one set needs.
type setLookupError struct {
	set string
	*LookupError
}

// Unwrap returns the lookup.
func (e *setLookupError) Unwrap() error { return e.LookupError }

package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/sidecar"
)

// sidecars adds what sets want. A set that may be missing is left out where it stands in the way.
func (w *Webhook) sidecars(ctx context.Context, r *round) (*corev1.Pod, error) {
	if err := w.lookups.ready(ctx); err != nil {
		return nil, &LookupError{What: "sidecarsets", Err: err}
	}
	candidates, err := w.candidates(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(candidates) == 0 {
		return nil, nil //nolint:nilnil // nothing to do
	}
	slices.SortFunc(candidates, func(a, b *sidecar.Set) int { return strings.Compare(a.Name(), b.Name()) })
	for {
		injection, err := w.inject(ctx, r, candidates)
		if err == nil {
			r.warn(injection.Notes)
			return injection.Pod, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		out := blamed(candidates, err)
		if out < 0 || !scope.Ignores(candidates[out].Object()) {
			return w.relent(ctx, r, candidates, err)
		}
		r.leaveOut(candidates[out].Name(), err)
		candidates = slices.Delete(candidates, out, out+1)
	}
}

// candidates are the sets that might select the pod. One that the pod was sent for, and that the index does not have yet, is read
// from the API server; it is not put into the index, which might have heard already that the set is gone.
func (w *Webhook) candidates(ctx context.Context, r *round) ([]*sidecar.Set, error) {
	found := w.lookups.Sets.Candidates(r.namespace, r.pod.Labels)
	mark, is := ctx.Value(aheadKey{}).(scope.Mark)
	if !is || w.lookups.Sets.has(mark) {
		return found, nil
	}
	set, err := w.lookups.newSet(ctx, mark.Set)
	var broken *sidecar.FieldError
	switch {
	case mark.Open && errors.As(err, &broken):
		r.leaveOut(mark.Set, err)
	case err != nil || set == nil:
		return found, err
	}
	found = slices.DeleteFunc(found, func(s *sidecar.Set) bool { return s.Name() == mark.Set })
	if set == nil {
		return found, nil
	}
	return append(found, set), nil
}

// blamed is the set that an error is about; -1 if it is about none.
func blamed(sets []*sidecar.Set, err error) int {
	var field *sidecar.FieldError
	var lookup *setLookupError
	name := ""
	switch {
	case errors.As(err, &lookup):
		name = lookup.set
	case errors.As(err, &field):
		name = field.Set
	}
	return slices.IndexFunc(sets, func(s *sidecar.Set) bool { return s.Name() == name })
}

// relent tries without sets that may be missing, for the one that fails may clash with them: without each of them, and then
// without all.
func (w *Webhook) relent(ctx context.Context, r *round, sets []*sidecar.Set, why error) (*corev1.Pod, error) {
	var may, must []*sidecar.Set
	for _, set := range sets {
		if scope.Ignores(set.Object()) {
			may = append(may, set)
		} else {
			must = append(must, set)
		}
	}
	for i := range may {
		rest := slices.DeleteFunc(slices.Clone(sets), func(s *sidecar.Set) bool { return s == may[i] })
		if injection, err := w.inject(ctx, r, rest); err == nil {
			r.leaveOut(may[i].Name(), why)
			r.warn(injection.Notes)
			return injection.Pod, nil
		}
	}
	if len(may) > 1 {
		if injection, err := w.inject(ctx, r, must); err == nil {
			for _, set := range may {
				r.leaveOut(set.Name(), why)
			}
			r.warn(injection.Notes)
			return injection.Pod, nil
		}
	}
	return nil, why
}

// leaveOut tells whoever creates the pod what it goes without.
func (r *round) leaveOut(set string, why error) {
	r.lost++
	r.warnings = append(r.warnings, fmt.Sprintf("sidecarset %s is left out: %v", set, why))
}

func (w *Webhook) inject(ctx context.Context, r *round, candidates []*sidecar.Set) (sidecar.Injection, error) {
	namespace, err := w.namespace(ctx, r, candidates)
	if err != nil {
		return sidecar.Injection{}, err
	}
	selection, err := sidecar.Select(r.pod, namespace, candidates)
	if err != nil {
		return sidecar.Injection{}, err
	}
	if err := w.lookups.Sets.usable(selection.Sets); err != nil {
		return sidecar.Injection{}, err
	}
	for i, set := range selection.Sets {
		if set.Pinned() {
			if selection.Sets[i], err = w.resolve(ctx, r, set); err != nil {
				return sidecar.Injection{}, err
			}
		}
	}
	return sidecar.Inject(r.pod, selection.Sets, sidecar.Options{Now: w.options.Now(), SortContainers: w.options.SortContainers})
}

// namespace is that of the pod, if a set asks for it.
func (w *Webhook) namespace(ctx context.Context, r *round, sets []*sidecar.Set) (*corev1.Namespace, error) {
	for _, set := range sets {
		if set.Object().Spec.NamespaceSelector == nil {
			continue
		}
		if selects, err := sidecar.MatchesPod(set.Object(), r.pod); err == nil && !selects {
			continue
		}
		namespace, err := w.lookups.namespace(ctx, r.namespace)
		if err != nil {
			return nil, &setLookupError{set.Name(), &LookupError{What: "namespace " + r.namespace, Err: err}}
		}
		return namespace, nil
	}
	return nil, nil //nolint:nilnil // nobody asks
}

// resolve is the set as this pod gets it. What was restored of a revision is kept.
func (w *Webhook) resolve(ctx context.Context, r *round, set *sidecar.Set) (*sidecar.Set, error) {
	former, err := w.former(ctx, set)
	if err != nil {
		return nil, err
	}
	held, err := set.HoldsBack(r.pod, r.draw(set, former.Name))
	if err != nil || !held {
		return set, err
	}
	return w.restored.restore(set, former)
}

// former is the revision that a set is pinned to. No pod is refused because the cache of revisions is behind that of sets; but
// what the API server does not have either is asked for only now and then.
func (w *Webhook) former(ctx context.Context, set *sidecar.Set) (*appsv1.ControllerRevision, error) {
	find := func(from client.Reader) (*appsv1.ControllerRevision, error) {
		revisions, err := revisionsOf(ctx, from, w.options.Namespace, set)
		if err != nil {
			return nil, &setLookupError{set.Name(), &LookupError{What: "revisions of sidecarset " + set.Name(), Err: err}}
		}
		return sidecar.Former(set, revisions)
	}
	failed := func(err error) bool { return errors.As(err, new(*setLookupError)) }
	former, err := find(w.lookups.Revisions)
	if err == nil || failed(err) || w.lookups.Live == nil || w.absent.known(set.Object(), w.options.Now()) {
		return former, err
	}
	if former, err = find(w.lookups.Live); err != nil && !failed(err) {
		w.absent.note(set.Object(), w.options.Now())
	}
	return former, err
}

// draw is the chance of a set at this pod. A pod that was here before keeps what it got then: the API server calls once for
// each entry of the configuration that is about the pod, and each call is a request of its own.
func (r *round) draw(set *sidecar.Set, former string) uint32 {
	if got, before := gotBefore(r.pod, set.Name()); before {
		if got == former {
			return 0
		}
		return math.MaxUint32
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(r.uid) + "/" + set.Name()))
	return uint32(h.Sum64() >> 32)
}

// gotBefore is the revision of a set that is recorded on a pod that has injected containers.
func gotBefore(pod *corev1.Pod, set string) (revision string, is bool) {
	text := pod.Annotations[pub.SidecarSetHashKey]
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
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == pub.SidecarInjectedEnvName && e.Value == "true" })
	})
}

// warn tells whoever creates the pod what of it was replaced, what is missing, and what API servers will not take.
func (r *round) warn(notes []sidecar.Note) {
	for _, n := range notes {
		switch n.Code {
		case sidecar.NoteVolumeKept:
			if _, before := gotBefore(r.pod, n.Object); before {
				continue // it is the set's own, with defaults
			}
			fallthrough
		case sidecar.NoteReplaced, sidecar.NoteAnnotationReplaced, sidecar.NoteVolumeMissing, sidecar.NoteAboveLimit:
			r.warnings = append(r.warnings, fmt.Sprintf("sidecarset %s: %s", n.Object, n.Text))
		}
	}
}

// setLookupError is a lookup for the sake of one set.
type setLookupError struct {
	set string
	*LookupError
}

// Unwrap gives the lookup.
func (e *setLookupError) Unwrap() error { return e.LookupError }

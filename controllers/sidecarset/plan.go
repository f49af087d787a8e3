package sidecarset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

// content is what a revision holds of a set.
type content struct {
	Volumes          []corev1.Volume                      `json:"volumes"`
	Containers       []v1beta1.SidecarContainer           `json:"containers"`
	InitContainers   []v1beta1.SidecarContainer           `json:"initContainers"`
	ImagePullSecrets []corev1.LocalObjectReference        `json:"imagePullSecrets"`
	PatchPodMetadata []v1beta1.SidecarSetPatchPodMetadata `json:"patchPodMetadata"`
}

// encode gives the data of a revision: a patch that replaces the spec, with its keys in the order in which the reference
// writes them, since names derive from the bytes.
func encode(set *v1beta1.SidecarSet) ([]byte, error) {
	data, err := json.Marshal(content{
		Volumes: set.Spec.Volumes, Containers: set.Spec.Containers, InitContainers: set.Spec.InitContainers,
		ImagePullSecrets: set.Spec.ImagePullSecrets, PatchPodMetadata: set.Spec.PatchPodMetadata,
	})
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	spec := map[string]any{}
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	for key, value := range spec {
		if list, is := value.([]any); is && len(list) == 0 {
			spec[key] = nil // an empty list is none, however it was written
		}
	}
	spec["$patch"] = "replace"
	if data, err = json.Marshal(map[string]any{"spec": spec}); err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return data, nil
}

// same says whether two revisions hold the same, however it was printed. What cannot be read is the same as nothing else.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y struct {
		Spec content `json:"spec"`
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && apiequality.Semantic.DeepEqual(x, y)
}

// resolve finds the set among its revisions.
func (s *snapshot) resolve(data []byte) revision.Resolution {
	have := make([]*appsv1.ControllerRevision, len(s.revisions))
	for i, rev := range s.revisions {
		have[i] = rev
		if same(rev.Data.Raw, data) && !bytes.Equal(rev.Data.Raw, data) {
			alike := *rev // found by its bytes
			alike.Data.Raw = data
			have[i] = &alike
		}
	}
	return revision.Resolve(revision.Input{Owner: s.set.Name, Data: data, Have: have, Collisions: s.set.Status.CollisionCount})
}

// kept are the names of revisions that are not trimmed, whatever the limit.
func (s *snapshot) kept(newest string, onPods []string) sets.Set[string] {
	kept := sets.New(onPods...).Insert(newest)
	pin := s.set.Spec.InjectionStrategy.Revision
	switch {
	case pin == nil:
	case pin.RevisionName != nil:
		kept.Insert(*pin.RevisionName)
	case pin.CustomVersion != nil:
		last := ""
		for _, rev := range s.revisions { // oldest first
			if rev.Labels[v1beta1.SidecarSetCustomVersionLabel] == *pin.CustomVersion {
				last = rev.Name
			}
		}
		kept.Insert(last)
	}
	return kept
}

// surplus are the revisions to delete, the oldest first.
func (s *snapshot) surplus(newest string, onPods []string) []*appsv1.ControllerRevision {
	limit := int32(v1beta1.DefaultSidecarSetRevisionHistoryLimit)
	if l := s.set.Spec.RevisionHistoryLimit; l != nil {
		limit = *l
	}
	kept := s.kept(newest, onPods)
	var surplus []*appsv1.ControllerRevision
	for _, rev := range s.revisions {
		if len(s.revisions)-len(surplus) <= max(1, int(limit)) {
			break
		}
		if !kept.Has(rev.Name) {
			surplus = append(surplus, rev)
		}
	}
	return surplus
}

// input is what the plan of updates looks at.
func (a *act) input(ctx context.Context) rollout.Input {
	refused := a.memory.refusals(a.set.Name, a.Reconciler)
	return rollout.Input{
		Set: a.set, Revision: a.revision.Name, Pods: a.latest(), Namespaces: a.namespaces, Now: a.now,
		Gone: a.gone(ctx),
		May: func(pod *corev1.Pod) (bool, string) {
			if left, is := refused[pod.UID]; is {
				a.wake(left)
				return false, "its update was refused a moment ago"
			}
			if a.options.MayUpdate == nil {
				return true, ""
			}
			ok, why := a.options.MayUpdate(pod)
			if !ok {
				a.wake(time.Second)
			}
			return ok, why
		},
	}
}

// latest are all pods, as the writes of this pass left them.
func (a *act) latest() []*corev1.Pod {
	all := a.all()
	for i, pod := range all {
		if fresh, ok := a.fresh[pod.UID]; ok {
			all[i] = fresh
		}
	}
	return all
}

// isGone says whether a set does not exist, and not only in a cache that may show some of the sets. When in doubt it does.
func (r *Reconciler) isGone(ctx context.Context, name string) bool {
	for _, reader := range []client.Reader{r.sets, r.live()} {
		if err := reader.Get(ctx, types.NamespacedName{Name: name}, stored.Untyped(gvk())); !apierrors.IsNotFound(err) {
			return false
		}
	}
	return true
}

// gone says which sets do not exist, and remembers it for the pass.
func (a *act) gone(ctx context.Context) func(string) bool {
	if a.known == nil {
		a.known = map[string]bool{a.set.Name: false}
	}
	return func(name string) bool {
		is, asked := a.known[name]
		if !asked {
			is = a.isGone(ctx, name)
			a.known[name] = is
		}
		return is
	}
}

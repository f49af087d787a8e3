package rollout

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/write"
)

// maxQuestions bounds the sets about which one pass asks the API server. Pods name them, and what the owner of a pod
// writes there may be long.
const maxQuestions = 16

// dropGone removes what a pod records of other sets that are gone, and remembers the sets that are not known. It looks
// at as many sets as a pod can have.
func dropGone[T any](in *Input, all map[string]T) {
	if in.Gone == nil {
		return
	}
	seen := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == in.Set.Name {
			continue
		}
		if seen++; seen > maxSets {
			return
		}
		switch gone, known := in.Gone[name]; {
		case gone:
			delete(all, name)
		case !known:
			in.unknown[name] = true
		}
	}
}

// recorded remembers the sets of a record that are not known.
func (in *Input) recorded(all map[string]bool) { dropGone(in, all) }

// questions returns the questions about sets that are not known, in the order of their names.
func (p *Pass) questions() []*Change {
	var all []*Change
	for _, name := range slices.Sorted(maps.Keys(p.in.unknown)) {
		if _, known := p.in.Gone[name]; known || p.asked == maxQuestions {
			continue
		}
		p.asked++
		set := &unstructured.Unstructured{}
		set.SetGroupVersionKind(appsv1beta1.GroupVersion.WithKind("SidecarSet"))
		set.SetName(name)
		all = append(all, &Change{Write: write.Write{Verb: write.Get, Object: set}, Action: ActionAsk})
	}
	p.in.unknown = map[string]bool{}
	return all
}

// learn takes the answer to a question. When in doubt the set exists.
func (p *Pass) learn(set string, err error) {
	gone := apierrors.IsNotFound(err)
	p.in.Gone[set] = gone
	p.learned = p.learned || gone
}

// Release returns the pass that removes a deleted set from the conditions of its pods. It asks the API server first
// whether the set is gone.
func Release(pods []*corev1.Pod, set string, now time.Time) *Pass {
	p := &Pass{released: set, plans: maxPlans, stages: [][]*Change{Forget(pods, set, now)}}
	p.in.Gone, p.in.unknown = map[string]bool{}, map[string]bool{}
	if len(p.stages[0]) > 0 {
		p.in.unknown[set] = true
	}
	return p
}

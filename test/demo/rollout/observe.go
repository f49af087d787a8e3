package rollout

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/test/demo/screen"
)

// describe names a revision by what the story changes in it.
func describe(spec *corev1.PodSpec) string {
	var words []string
	for i := range spec.Containers {
		c := &spec.Containers[i]
		words = append(words, c.Image)
		for _, env := range c.Env {
			words = append(words, "+"+env.Name)
		}
	}
	return strings.Join(words, " ")
}

// memory is what there was before a step: the restarts of each pod.
type memory map[types.UID]int32

func remember(pods []corev1.Pod) memory {
	m := memory{}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			m[pods[i].UID] = restarts(&pods[i])
		}
	}
	return m
}

func restarts(pod *corev1.Pod) int32 {
	n := int32(0)
	for i := range pod.Status.ContainerStatuses {
		n += pod.Status.ContainerStatuses[i].RestartCount
	}
	return n
}

// observed is what pods amount to.
type observed struct {
	revisions     []screen.Revision
	updated, kept int
	// restarted are containers of pods from before, and started those of others.
	restarted, started int
	// quiet reports that no writer is about to write to any pod: none leaves, starts, or is in the middle of a change.
	quiet bool
}

// observe counts pods. order are the revisions from the oldest to the one that is wanted.
func observe(pods []corev1.Pod, before memory, order []string) observed {
	o, all := observed{quiet: true}, map[string]screen.Revision{}
	for i := range pods {
		pod := &pods[i]
		name := describe(&pod.Spec)
		r := all[name]
		r.Name = name
		was, known := before[pod.UID]
		switch {
		case pod.DeletionTimestamp != nil:
			r.Leaving++
			o.quiet = false
		case isReady(pod):
			r.Ready++
			state := lifecycle.StateOf(pod)
			o.quiet = o.quiet && (state == "" || state == kruise.LifecycleStateNormal)
		default:
			r.Starting++
			o.quiet = false
		}
		all[name] = r
		if pod.DeletionTimestamp != nil {
			continue
		}
		if name == order[len(order)-1] {
			o.updated++
		}
		if known {
			o.kept++
			o.restarted += int(restarts(pod) - was)
		} else {
			o.started += len(pod.Spec.Containers)
		}
	}
	for _, name := range order {
		if r, ok := all[name]; ok {
			o.revisions = append(o.revisions, r)
		}
	}
	return o
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

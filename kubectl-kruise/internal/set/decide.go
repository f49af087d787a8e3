package set

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// Image returns the operations that give containers other images, by name. The name * means all containers.
func Image(o *unstructured.Unstructured, images map[string]string) ([]write.Op, error) {
	if _, all := images["*"]; all && len(images) > 1 {
		return nil, fmt.Errorf("all containers are already specified by *, but saw more than one pair")
	}
	var ops []write.Op
	for _, name := range slices.Sorted(maps.Keys(images)) {
		matching, err := containers(o, name)
		if err != nil {
			return nil, err
		}
		for _, c := range matching {
			if c.Image != images[name] {
				ops = append(ops, c.still(), write.Add(c.at("image"), images[name]))
			}
		}
	}
	return ops, nil
}

// Resources returns the operations that set limits and requests in the containers whose names match a pattern.
func Resources(o *unstructured.Unstructured, pattern string, r corev1.ResourceRequirements) ([]write.Op, error) {
	matching, err := containers(o, pattern)
	if err != nil {
		return nil, err
	}
	ops := target.Unchanged(o)
	for _, c := range matching {
		set := c.Resources.DeepCopy()
		set.Limits = joined(set.Limits, r.Limits)
		set.Requests = joined(set.Requests, r.Requests)
		ops = append(ops, c.still(), write.Add(c.at("resources"), set))
	}
	return ops, nil
}

func joined(have, set corev1.ResourceList) corev1.ResourceList {
	if have == nil {
		return set
	}
	maps.Copy(have, set)
	return have
}

// ServiceAccount returns the operations that give pods another service account.
func ServiceAccount(o *unstructured.Unstructured, name string) ([]write.Op, error) {
	at := kinds.TemplatePath(o)
	if at == nil {
		return nil, fmt.Errorf("%s %s has no pod template", o.GetKind(), o.GetName())
	}
	return target.Set(o, name, append(at, "spec", "serviceAccountName")...), nil
}

// EnvChange is a change of environment variables.
type EnvChange struct {
	// Pattern selects containers by name.
	Pattern string
	Set     []corev1.EnvVar
	Remove  []string
	// Keep makes it an error to change a value.
	Keep bool
}

// Env returns the operations of a change of environment variables.
func Env(o *unstructured.Unstructured, change EnvChange) ([]write.Op, error) {
	matching, err := containers(o, change.Pattern)
	if err != nil {
		return nil, err
	}
	var ops []write.Op
	for _, c := range matching {
		after, err := change.apply(c.Env)
		switch {
		case err != nil:
			return nil, err
		case slices.Equal(after, c.Env): // pointers of sources are those of c.Env
		case len(after) == 0:
			ops = append(ops, c.still(), write.Remove(c.at("env")))
		default:
			ops = append(ops, c.still(), write.Add(c.at("env"), after))
		}
	}
	if len(ops) == 0 {
		return nil, nil
	}
	return append(target.Unchanged(o), ops...), nil
}

// apply returns variables after the change: each keeps its place, and new ones follow.
func (e EnvChange) apply(have []corev1.EnvVar) ([]corev1.EnvVar, error) {
	var after []corev1.EnvVar
	done := map[string]bool{}
	for _, name := range e.Remove {
		done[name] = true
	}
	for _, v := range have {
		if done[v.Name] {
			continue
		}
		at := slices.IndexFunc(e.Set, func(s corev1.EnvVar) bool { return s.Name == v.Name })
		if at < 0 {
			after = append(after, v)
			continue
		}
		if e.Keep && v.Value != e.Set[at].Value {
			return nil, fmt.Errorf("'%s' already has a value (%s), and --overwrite is false", v.Name, v.Value)
		}
		done[v.Name] = true
		after = append(after, e.Set[at])
	}
	for _, v := range e.Set {
		if !done[v.Name] {
			done[v.Name] = true
			after = append(after, v)
		}
	}
	return after, nil
}

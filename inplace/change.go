package inplace

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// Change is what leads from one template to another in running pods. It is computed once for two revisions, and
// only read after that.
type Change struct {
	// Images by container.
	Images map[string]string
	// Resources by container: the values of cpu and memory that change. The empty name has those of the pod as a whole.
	Resources map[string]corev1.ResourceRequirements
	// RefMetadata are, by container, the labels and annotations that feed its environment and that get a new value.
	RefMetadata map[string]metav1.ObjectMeta
	// Metadata is the rest of the change of labels and annotations, and of finalizers.
	Metadata Metadata
	// Env are the containers whose environment changes with the metadata.
	Env []string
}

// Metadata is a change of a pod's metadata.
type Metadata struct {
	// RemoveFinalizers and AddFinalizers change the finalizers.
	RemoveFinalizers []string `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
	// Annotations and Labels with their new values; nil removes one.
	Annotations   map[string]*string `json:"annotations,omitempty"`
	AddFinalizers []string           `json:"finalizers,omitempty"`
	Labels        map[string]*string `json:"labels,omitempty"`
}

// Empty reports whether nothing changes.
func (c *Change) Empty() bool {
	return c.isMetadata() && c.Metadata.empty()
}

// isMetadata reports whether no container changes that the node must act on.
func (c *Change) isMetadata() bool {
	return len(c.Images) == 0 && len(c.Resources) == 0 && len(c.RefMetadata) == 0 && len(c.Env) == 0
}

func (m *Metadata) empty() bool {
	return len(m.Labels) == 0 && len(m.Annotations) == 0 && len(m.AddFinalizers) == 0 && len(m.RemoveFinalizers) == 0
}

// over gives this change on top of an older one that is not made yet.
func (c *Change) over(older *Change) *Change {
	if older == nil || older.Empty() {
		return c
	}
	merged := *c
	merged.Images, merged.Resources = overlay(older.Images, c.Images), mergeResources(older.Resources, c.Resources)
	merged.RefMetadata, merged.Env = mergeRefs(older.RefMetadata, c.RefMetadata), union(older.Env, c.Env)
	merged.Metadata = older.Metadata.then(c.Metadata)
	// A key that was to feed a container, and is now removed or no longer fed, must not come back with its old value.
	for name, refs := range merged.RefMetadata {
		newer := c.RefMetadata[name]
		refs.Labels = without(refs.Labels, c.Metadata.Labels, newer.Labels)
		refs.Annotations = without(refs.Annotations, c.Metadata.Annotations, newer.Annotations)
		merged.RefMetadata[name] = refs
	}
	for _, refs := range c.RefMetadata {
		drop(merged.Metadata.Labels, refs.Labels)
		drop(merged.Metadata.Annotations, refs.Annotations)
	}
	return &merged
}

func (m Metadata) then(newer Metadata) Metadata {
	return Metadata{
		Labels:           overlay(m.Labels, newer.Labels),
		Annotations:      overlay(m.Annotations, newer.Annotations),
		AddFinalizers:    union(minus(m.AddFinalizers, newer.RemoveFinalizers), newer.AddFinalizers),
		RemoveFinalizers: union(minus(m.RemoveFinalizers, newer.AddFinalizers), newer.RemoveFinalizers),
	}
}

// planned is the change that waits in a pod for the end of its grace period.
func (l look) planned(g *kruise.InPlaceUpdateGrace) (*Change, error) {
	c := &Change{
		Images: g.ContainerImages, Resources: g.ContainerResources, RefMetadata: g.ContainerRefMetadata,
		Env: slices.Sorted(maps.Keys(g.ContainerRefMetadata)),
	}
	if g.UpdateEnvFromMetadata && len(c.Env) == 0 {
		// Removed keys feed a container, and are not listed by container.
		for i := range l.pod.Spec.Containers {
			c.Env = append(c.Env, l.pod.Spec.Containers[i].Name)
		}
	}
	var err error
	if c.Metadata, err = decodeMetadata(g.MetaDataPatch); err != nil {
		return nil, unreadable(l.policy.Keys.InPlaceGraceKey(), err)
	}
	return c, nil
}

// left is the change that waits in a pod for its next batches.
func left(s *kruise.InPlaceUpdateState) *Change {
	return &Change{
		Images: s.NextContainerImages, Resources: s.NextContainerResources, RefMetadata: s.NextContainerRefMetadata,
		Env: slices.Sorted(maps.Keys(s.NextContainerRefMetadata)),
	}
}

// due is the part of a change that a pod does not have yet. What feeds an environment is always due.
func (c *Change) due(pod *corev1.Pod) *Change {
	d := *c
	d.Images, d.Resources = map[string]string{}, map[string]corev1.ResourceRequirements{}
	for name, image := range c.Images {
		if has := find(pod.Spec.Containers, name); has != nil && has.Image != image {
			d.Images[name] = image
		}
	}
	for name, resources := range c.Resources {
		if resourcesOf(pod, name) != nil {
			d.Resources[name] = resources
		}
	}
	return &d
}

// Restarts returns the names of the containers of a pod that restart when the change is made in the pod, sorted:
// containers that get another image, containers whose environment changes, and containers whose resize policy restarts
// them. A change of a variable restarts a container only where a node daemon runs, see Policy.Env.
func (c *Change) Restarts(pod *corev1.Pod) []string {
	names := make([]string, 0, len(c.Images)+len(c.Env)+len(c.Resources))
	for name, image := range c.Images {
		if has := find(pod.Spec.Containers, name); has != nil && has.Image != image {
			names = append(names, name)
		}
	}
	for _, name := range c.Env {
		if find(pod.Spec.Containers, name) != nil {
			names = append(names, name)
		}
	}
	for name, resources := range c.Resources {
		if has := find(pod.Spec.Containers, name); has != nil && restartedBy(has, resources) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inBatch returns what one write of a pod itself changes in the containers of a batch. Resources are written before.
func (l look) inBatch(c *Change, batch []string) *Change {
	part := &Change{Images: only(c.Images, batch)}
	for _, name := range c.Env {
		refs := c.RefMetadata[name]
		now := slices.Contains(batch, name) && len(refs.Labels)+len(refs.Annotations) > 0
		if has := find(l.pod.Spec.Containers, name); has != nil && (now || c.Metadata.feeds(has)) {
			part.Env = append(part.Env, name)
		}
	}
	return part
}

// feeds reports whether a change of metadata changes what a container's environment is fed from.
func (m *Metadata) feeds(c *corev1.Container) bool {
	return slices.ContainsFunc(fedBy(c), func(f feed) bool {
		changed := m.Labels
		if !f.label {
			changed = m.Annotations
		}
		_, ok := changed[f.key]
		return ok
	})
}

func restartedBy(c *corev1.Container, change corev1.ResourceRequirements) bool {
	for _, p := range c.ResizePolicy {
		_, limit := change.Limits[p.ResourceName]
		_, request := change.Requests[p.ResourceName]
		if p.RestartPolicy == corev1.RestartContainer && (limit || request) {
			return true
		}
	}
	return false
}

// SameImage reports whether two references name the same image, however a container runtime writes them: nginx is
// docker.io/library/nginx:latest. Where one has a digest the other needs the same; tags are no matter then.
func SameImage(a, b string) bool {
	if a == b {
		return true
	}
	x, y := parseImage(a), parseImage(b)
	if x.domain != y.domain || x.path != y.path {
		return false
	}
	if x.digest != "" || y.digest != "" {
		return x.digest == y.digest
	}
	return x.tag == y.tag
}

type image struct{ domain, path, tag, digest string }

// hub is the registry of references without one.
const hub = "docker.io"

// parseImage never fails: what is no reference equals only itself.
func parseImage(s string) image {
	var i image
	s = strings.TrimPrefix(s, "docker-pullable://")
	s, i.digest, _ = strings.Cut(s, "@")
	if slash, colon := strings.LastIndexByte(s, '/'), strings.LastIndexByte(s, ':'); colon > slash {
		s, i.tag = s[:colon], s[colon+1:]
	}
	if i.tag == "" {
		i.tag = "latest"
	}
	var ok bool
	i.domain, i.path, ok = strings.Cut(s, "/")
	if !ok || !strings.ContainsAny(i.domain, ".:") && i.domain != "localhost" && strings.ToLower(i.domain) == i.domain {
		i.domain, i.path = hub, s
	}
	if i.domain == "index.docker.io" {
		i.domain = hub
	}
	if name, official := strings.CutPrefix(i.path, "library/"); official && i.domain == hub &&
		!strings.Contains(name, "/") {
		i.path = name
	}
	return i
}

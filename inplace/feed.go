package inplace

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// feed is a label or an annotation that feeds an environment variable.
type feed struct {
	env, key string
	label    bool
}

func (f feed) String() string {
	if f.label {
		return "label " + f.key
	}
	return "annotation " + f.key
}

// fedBy are the labels and annotations that feed a container's environment.
func fedBy(c *corev1.Container) []feed {
	var feeds []feed
	for i := range c.Env {
		e := &c.Env[i]
		// Sidecars read the version of their set this way, and must not restart for it.
		if e.Value != "" || e.ValueFrom == nil || e.ValueFrom.FieldRef == nil || e.Name == kruise.SidecarSetVersionEnvName ||
			e.Name == kruise.SidecarSetVersionAltEnvName {
			continue
		}
		if f, ok := parseField(e.ValueFrom.FieldRef.FieldPath); ok {
			f.env = e.Name
			feeds = append(feeds, f)
		}
	}
	return feeds
}

// parseField reads metadata.labels['key'] and metadata.annotations['key'].
func parseField(path string) (feed, bool) {
	rest, label := strings.CutPrefix(path, "metadata.labels['")
	if !label {
		var annotation bool
		if rest, annotation = strings.CutPrefix(path, "metadata.annotations['"); !annotation {
			return feed{}, false
		}
	}
	key, ok := strings.CutSuffix(rest, "']")
	return feed{key: key, label: label}, ok
}

package sidecarset

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/write"
)

// extras returns the fields that a container of a set has and a container of a pod lacks.
func extras() []string {
	return []string{
		"podInjectPolicy", "upgradeStrategy", "shareVolumePolicy", "shareVolumeDevicePolicy", "transferEnv",
		"resourcesPolicy",
	}
}

// podParts returns the lists of a set that a pod has under the same names.
func podParts() []string { return []string{"initContainers", "containers", "volumes"} }

// content is an object as it was sent, with the fields that no schema describes.
type content map[string]any

// contentOf returns nil for what cannot be decoded.
func contentOf(raw []byte) content {
	c, err := review.Decode(raw)
	if err != nil {
		return nil
	}
	return c
}

func (c content) spec() map[string]any {
	spec, _ := c["spec"].(map[string]any)
	return spec
}

// list returns nil for a missing list.
func (c content) list(name string) []any {
	list, _ := c.spec()[name].([]any)
	return list
}

// sameParts reports whether two sets have the same containers and volumes, extras aside or not.
func sameParts(a, b content) bool {
	for _, name := range podParts() {
		if !reflect.DeepEqual(a.list(name), b.list(name)) {
			return false
		}
	}
	return true
}

// judgeParts asks the API server to validate and default the containers and volumes of a set, as those of a pod without
// anything else. It reports unknown fields on request.
func (w *webhooks) judgeParts(ctx context.Context, c content, reportUnknown bool) (podtemplate.Verdict, error) {
	const at = "template"
	spec := map[string]any{"volumes": c.list("volumes"), "initContainers": bare(c.list("initContainers"))}
	containers := bare(c.list("containers"))
	if len(containers) == 0 {
		containers = []any{map[string]any{"name": "kruise-no-container", "image": "none"}} // a pod needs one
	}
	spec["containers"] = containers
	//nolint:forcetypeassert // all are lists
	maps.DeleteFunc(spec, func(_ string, list any) bool { return len(list.([]any)) == 0 })
	verdict, err := podtemplate.Check(ctx, w.api, podtemplate.Template{
		Namespace:   w.options.Namespace,
		Content:     map[string]any{"spec": spec},
		Path:        field.NewPath(at),
		TellUnknown: reportUnknown,
		Timeout:     w.options.Timeout,
	})
	for _, fault := range verdict.Faults {
		if fault.Field = strings.TrimPrefix(fault.Field, at+"."); fault.Field == at {
			fault.Field = "spec"
		}
	}
	for _, paths := range [][]string{verdict.Unknown, verdict.Newer} {
		for i, path := range paths {
			paths[i] = strings.TrimPrefix(path, at+".")
		}
	}
	if len(c.list("containers")) == 0 {
		defaulted, _ := verdict.Defaulted["spec"].(map[string]any)
		delete(defaulted, "containers")
	}
	return verdict, err
}

// bare returns copies of containers without the extras.
func bare(containers []any) []any {
	all := make([]any, len(containers))
	for i, c := range containers {
		all[i] = c
		if object, ok := c.(map[string]any); ok {
			object = maps.Clone(object)
			for _, key := range extras() {
				delete(object, key)
			}
			all[i] = object
		}
	}
	return all
}

// isRefused reports whether a rule of the cluster refuses PodTemplates, whatever is in them. A set does not wait for
// another rule: its containers then have no defaults but those of the set, and what is invalid in them shows in their
// pods.
func isRefused(err error) bool {
	var unavailable *podtemplate.UnavailableError
	return errors.As(err, &unavailable) && unavailable.Reason == podtemplate.Refused
}

// fillParts fills in the defaults of the API server in containers and volumes, if one of them is new or has changed,
// and returns them as a patch. Invalid parts get no defaults: the validating webhook rejects them.
//
// A container that was defaulted earlier gets no default that the API server has added since, nor one that the
// reference does not fill in: its hash would change, and no running pod could be updated to it.
func (w *webhooks) fillParts(
	ctx context.Context, _ kinds.API, change change, object map[string]any,
) ([]write.Op, error) {
	c, stored := content(object), contentOf(change.RawBefore)
	if stored != nil && sameParts(c, stored) ||
		len(c.list("containers"))+len(c.list("initContainers"))+len(c.list("volumes")) == 0 {
		return nil, nil
	}
	verdict, err := w.judgeParts(ctx, c, false)
	if isRefused(err) {
		return nil, nil // Validate warns
	}
	if err != nil || len(verdict.Faults) > 0 {
		return nil, err
	}
	defaulted, _ := verdict.Defaulted["spec"].(map[string]any)
	want := map[string]any{}
	for _, name := range podParts() {
		if list, ok := defaulted[name]; ok {
			want[name] = list
		}
	}
	before := map[string]any{}
	for _, name := range []string{"initContainers", "containers"} {
		before[name] = defaultedOnes(stored.list(name))
	}
	return podtemplate.RefillParts("/spec", c.spec(), want, before), nil
}

// defaultedOnes returns the containers that have the default of every container.
func defaultedOnes(containers []any) []any {
	var all []any
	for _, c := range containers {
		if object, ok := c.(map[string]any); ok && object["terminationMessagePath"] != nil {
			all = append(all, object)
		}
	}
	return all
}

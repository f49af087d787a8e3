package diagnose

import (
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// removed replaces a value that may be a secret.
const removed = "(removed)"

// secretKeys are the fields whose values may hold a secret, wherever they are in an object.
func secretKeys() map[string]bool {
	return map[string]bool{
		"command": true, "args": true, "data": true, "stringData": true, "binaryData": true, "httpHeaders": true,
		"caBundle": true, "token": true, "password": true, "dockerconfigjson": true,
		"volumeAttributes": true, "options": true, // of drivers of volumes
		"message": true, // quotes the output of a probe, of a hook or of a container
	}
}

// shownAnnotations are the annotations whose values are packed. Users and other programs choose the values of all
// others.
func shownAnnotations() []string {
	return []string{
		kruise.InPlaceUpdateStateKey, kruise.LifecycleTimestampKey, kruise.RuntimeContainerMetaKey,
		kruise.MatchedWorkloadSpreadKey, kruise.PodRelatedPubKey, kruise.PodRelatedPubKeyOld,
		kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetInjectedListKey,
		kruise.SidecarSetInPlaceUpdateStateKey, kruise.SidecarSetWorkingHotUpgradeContainerKey,
		kruise.ContainerLaunchPriorityKey, corev1.PodDeletionCost,
		"kruisekit.dev/pending-revision", "kruisekit.dev/rollout", "kruisekit.dev/rollout-status",
	}
}

// shownConditions are the conditions of pods whose messages are packed. The message of any other condition may be the
// output of a probe.
func shownConditions() []string {
	return []string{
		string(corev1.PodScheduled), string(corev1.PodInitialized), string(corev1.ContainersReady), string(corev1.PodReady),
		string(corev1.DisruptionTarget), string(kruise.InPlaceUpdateReady), string(kruise.KruisePodReadyConditionType),
	}
}

// Redact removes from an object the values that may be a secret: those of environment variables, commands, data of
// ConfigMaps and distributed resources, headers and outputs of probes, and of annotations at any depth.
func Redact(o *unstructured.Unstructured) *unstructured.Unstructured {
	after := o.DeepCopy()
	after.SetManagedFields(nil)
	r := redaction{secret: secretKeys(), ofPod: o.GetKind() == "Pod"}
	switch o.GetKind() {
	case "ControllerRevision":
		if controlledByWorkload(o) { // then the data is a template
			delete(r.secret, "data")
		}
	case "CustomResourceDefinition": // whose schemas have such fields, and are in every release
		versions, _, _ := unstructured.NestedSlice(after.Object, "spec", "versions")
		for _, v := range versions {
			if fields, ok := v.(map[string]any); ok {
				delete(fields, "schema")
			}
		}
		_ = unstructured.SetNestedSlice(after.Object, versions, "spec", "versions")
	}
	r.value(after.Object)
	return after
}

func controlledByWorkload(o *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return false
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == appsv1.GroupName || group == kinds.Apps
}

// redaction removes the secrets of one object.
type redaction struct {
	secret map[string]bool
	ofPod  bool
}

// value returns a value without secrets. It changes maps and lists in place.
func (r redaction) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			v[key] = r.field(key, field)
		}
	case []any:
		for i, item := range v {
			v[i] = r.value(item)
		}
	case string:
		return r.text(v)
	}
	return v
}

func (r redaction) field(key string, v any) any {
	switch {
	case r.secret[key]:
		return removed
	case key == "env":
		return r.items(v, func(fields map[string]any) {
			if fields["value"] != nil {
				fields["value"] = removed
			}
		})
	case key == "conditions":
		return r.items(v, func(fields map[string]any) {
			message := fields["message"]
			r.value(fields)
			kind, _ := fields["type"].(string)
			if message != nil && (!r.ofPod || slices.Contains(shownConditions(), kind)) {
				fields["message"] = message
			}
		})
	case key == "annotations":
		return r.annotations(v)
	case key == "path": // of an HTTP probe
		if path, _ := v.(string); strings.Contains(path, "?") {
			path, _, _ = strings.Cut(path, "?")
			return path + "?" + removed
		}
	}
	return r.value(v)
}

// items calls do for each item of a list of objects. Anything else in place of the list is removed.
func (redaction) items(v any, do func(fields map[string]any)) any {
	list, ok := v.([]any)
	if !ok {
		return removed
	}
	for i, item := range list {
		if fields, ok := item.(map[string]any); ok {
			do(fields)
		} else {
			list[i] = removed
		}
	}
	return list
}

func (r redaction) annotations(v any) any {
	all, ok := v.(map[string]any)
	if !ok {
		return removed
	}
	for key, value := range all {
		if !slices.Contains(shownAnnotations(), key) {
			all[key] = removed
			continue
		}
		all[key] = r.value(value)
	}
	return all
}

// text removes the secrets of a text that is JSON.
func (r redaction) text(text string) any {
	if start := strings.TrimSpace(text); !strings.HasPrefix(start, "{") && !strings.HasPrefix(start, "[") {
		return text
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return removed
	}
	after, err := json.Marshal(r.value(v))
	if err != nil {
		return removed
	}
	return string(after)
}

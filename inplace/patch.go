package inplace

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/write"
)

// body makes the operations of a JSON patch. Such a patch tests what it was decided upon, and so never overwrites what
// another writer did meanwhile, without failing for every other change of the pod.
type body func(*patch) error

// Data returns the patch.
func (b body) Data() ([]byte, error) {
	p := &patch{}
	if err := b(p); err != nil {
		return nil, err
	}
	return write.Encode(p.ops)
}

// write returns a patch of the pod.
func (l look) write(subresource string, b body) *write.Write {
	return &write.Write{Verb: write.Patch, Object: l.pod, Subresource: subresource, Type: types.JSONPatchType, Body: b}
}

// patch collects operations.
type patch struct{ ops []write.Op }

func (p *patch) test(value any, path ...string) {
	p.ops = append(p.ops, write.Test(write.Pointer(path...), value))
}

func (p *patch) set(value any, path ...string) {
	p.ops = append(p.ops, write.Add(write.Pointer(path...), value))
}

func (p *patch) replace(value any, path ...string) {
	p.ops = append(p.ops, write.Replace(write.Pointer(path...), value))
}

func (p *patch) remove(path ...string) { p.ops = append(p.ops, write.Remove(write.Pointer(path...))) }

// absent tests that there is nothing at a path, whose parent is there.
func (p *patch) absent(path ...string) { p.test(nil, path...) }

// entry tests that a label or an annotation is as it was; have is what the pod has of them.
func (p *patch) entry(field string, have map[string]string, key string) {
	value, ok := have[key]
	switch {
	case ok:
		p.test(value, "metadata", field, key)
	case len(have) > 0:
		p.absent("metadata", field, key)
	default: // nor may anybody have added the first ones, which a later write of all of them would drop
		p.absent("metadata", field)
	}
}

// unchanged starts a patch of exactly this pod, as long as no other writer has advanced its update: begun
// another one, written the next batch, put it back into traffic.
func (l look) unchanged(p *patch) {
	if l.pod.UID != "" {
		p.test(l.pod.UID, "metadata", "uid")
	}
	p.entry("labels", l.pod.Labels, l.rules.label())
	p.entry("annotations", l.pod.Annotations, pub.InPlaceUpdateStateKey)
	p.entry("annotations", l.pod.Annotations, pub.InPlaceUpdateGraceKey)
	for i := range l.pod.Status.Conditions {
		if c := &l.pod.Status.Conditions[i]; c.Type == pub.InPlaceUpdateReady && c.Status == corev1.ConditionFalse {
			p.test(c.Type, "status", "conditions", strconv.Itoa(i), "type")
			p.test(c.Status, "status", "conditions", strconv.Itoa(i), "status")
		}
	}
}

// entries changes labels or annotations; have is what the pod has of them, with a test before that it has any.
func (p *patch) entries(field string, have map[string]string, changed map[string]*string) {
	if len(have) == 0 {
		all := map[string]string{}
		for key, value := range changed {
			if value != nil {
				all[key] = *value
			}
		}
		if len(all) > 0 {
			p.set(all, "metadata", field)
		}
		return
	}
	for _, key := range sorted(changed) {
		old, ok := have[key]
		switch value := changed[key]; {
		case value == nil && ok:
			p.remove("metadata", field, key)
		case value != nil && (!ok || old != *value):
			p.set(*value, "metadata", field, key)
		}
	}
}

// condition writes a condition of the pod, in its place where the pod has it.
func (p *patch) condition(pod *corev1.Pod, c corev1.PodCondition) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == c.Type {
			at := strconv.Itoa(i)
			p.test(c.Type, "status", "conditions", at, "type")
			p.replace(c, "status", "conditions", at)
			return
		}
	}
	// Two writers must not both add it.
	if pod.ResourceVersion != "" {
		p.test(pod.ResourceVersion, "metadata", "resourceVersion")
	}
	if len(pod.Status.Conditions) == 0 {
		p.set([]corev1.PodCondition{c}, "status", "conditions")
		return
	}
	p.set(c, "status", "conditions", "-")
}

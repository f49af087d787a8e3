package inplace

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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

// unchanged starts a patch of exactly this pod, as long as no other writer has advanced its update: begun
// another one, written the next batch, put it back into traffic.
func (l look) unchanged(p *patch) {
	p.ops = append(p.ops, write.TestUID(l.pod)...)
	p.ops = append(p.ops,
		write.TestLabel(l.pod, l.policy.Keys.RevisionKey()),
		write.TestAnnotation(l.pod, l.policy.Keys.InPlaceStateKey()),
		write.TestAnnotation(l.pod, l.policy.Keys.InPlaceGraceKey()))
	gate := l.gate()
	for i := range l.pod.Status.Conditions {
		if c := &l.pod.Status.Conditions[i]; c.Type == gate && c.Status == corev1.ConditionFalse {
			p.test(c.Type, "status", "conditions", strconv.Itoa(i), "type")
			p.test(c.Status, "status", "conditions", strconv.Itoa(i), "status")
		}
	}
}

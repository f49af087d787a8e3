package distribution

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/write"
)

// Request returns the request of a step that has not ended. What it creates shares the content of the resource: a pass
// may create thousands of copies.
func (p *Pass) Request(s Step) *write.Write {
	switch s.Action {
	case Create:
		return &write.Write{Verb: write.Create, Object: p.made(s.Namespace)}
	case Update:
		return &write.Write{Verb: write.Patch, Object: p.named(s), Type: PatchType, Body: update{p, s}}
	case Delete:
		metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: p.in.Resource.Name, UID: s.UID, ResourceVersion: s.Version,
		}}
		metadata.SetGroupVersionKind(p.in.Resource.Kind)
		return &write.Write{Verb: write.Delete, Object: metadata, SameVersion: true}
	case Inspect, Done:
	}
	return &write.Write{Verb: write.Get, Object: p.named(s)}
}

// made returns the copy to create in a namespace.
func (p *Pass) made(namespace string) Object { //nolint:ireturn // whichever kind it is
	if p.template == nil {
		p.template = p.in.Resource.Copy("", p.in.Owner)
	}
	if secret, is := p.template.(*corev1.Secret); is {
		made := *secret
		made.Namespace = namespace
		return &made
	}
	config, _ := p.template.(*corev1.ConfigMap)
	made := *config
	made.Namespace = namespace
	return &made
}

// named returns an object with a name alone, of which the API server answers the rest.
func (p *Pass) named(s Step) Object { //nolint:ireturn // whichever kind it is
	metadata := metav1.ObjectMeta{Namespace: s.Namespace, Name: p.in.Resource.Name}
	if p.in.Resource.Kind.Kind == KindSecret {
		return &corev1.Secret{ObjectMeta: metadata}
	}
	return &corev1.ConfigMap{ObjectMeta: metadata}
}

// update is the body of an update.
type update struct {
	pass *Pass
	step Step
}

// Data returns the bytes.
func (u update) Data() ([]byte, error) { return u.pass.in.Resource.Patch(u.step, u.pass.in.Owner) }

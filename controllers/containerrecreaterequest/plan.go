package containerrecreaterequest

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do about a request now. The request of the snapshot becomes what the API server answered.
type plan struct {
	*snapshot
	containerrestart.Plan

	// refused means that the request cannot be read.
	refused bool
}

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) *plan {
	p := &plan{snapshot: s, refused: s.malformed != nil && !over(s.request)}
	if p.refused {
		p.Notes = s.refusal()
		return p
	}
	p.Plan = containerrestart.Supervise(s.input())
	return p
}

// writes return the writes of the plan in their order; nil for none. Each is made from the request as the writes before
// have left it.
func (p *plan) writes() []func() *write.Write {
	if p.refused {
		return []func() *write.Write{p.refuse}
	}
	pod := func() *write.Write { return p.Pod }
	return []func() *write.Write{p.addFinalizer, pod, p.writeStatus, p.tidy, p.remove}
}

func (p *plan) addFinalizer() *write.Write {
	if !p.AddFinalizer {
		return nil
	}
	all := append(slices.Clone(p.request.Finalizers), v1beta1.ContainerRecreateRequestUnreadyAcquiredKey)
	return p.patch(write.Main, write.Fields{"metadata": p.metadata(map[string]any{"finalizers": all})})
}

// tidy removes what a request no longer needs, in one write.
func (p *plan) tidy() *write.Write {
	metadata := map[string]any{"uid": p.request.UID}
	if p.RemoveFinalizer {
		rest := slices.DeleteFunc(slices.Clone(p.request.Finalizers), func(f string) bool {
			return f == v1beta1.ContainerRecreateRequestUnreadyAcquiredKey
		})
		metadata = p.metadata(map[string]any{"finalizers": rest})
	}
	if p.RemoveActive {
		// Where the label alone goes, no version is needed: what has ended does not begin again.
		metadata["labels"] = map[string]any{v1beta1.ContainerRecreateRequestActiveKey: nil}
	}
	if !p.RemoveFinalizer && !p.RemoveActive {
		return nil
	}
	return p.patch(write.Main, write.Fields{"metadata": metadata})
}

func (p *plan) remove() *write.Write {
	if !p.Delete {
		return nil
	}
	return &write.Write{Verb: write.Delete, Object: p.untyped()}
}

// metadata is that of a patch which fails when the request has changed.
func (p *plan) metadata(more map[string]any) map[string]any {
	m := map[string]any{"uid": p.request.UID, "resourceVersion": p.request.ResourceVersion}
	maps.Copy(m, more)
	return m
}

func (p *plan) patch(subresource string, body write.Fields) *write.Write {
	return &write.Write{
		Verb: write.Patch, Object: p.untyped(), Subresource: subresource, Type: types.MergePatchType, Body: body,
	}
}

// untyped returns the request for a write. The client leaves the answer undecoded, because it may not fit the type.
func (p *plan) untyped() *unstructured.Unstructured {
	raw := stored.Kind{GVK: gvk()}.Named(p.key())
	raw.SetUID(p.request.UID)
	return raw
}

package containerrecreaterequest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// writeStatus returns the write of the status that is decided.
func (p *plan) writeStatus() *write.Write {
	if p.Write == nil {
		return nil
	}
	w := *p.Write
	w.Verb, w.Object, w.Subresource = write.Patch, p.untyped(), write.Status
	return &w
}

func (s *snapshot) refusal() []note.Note {
	return []note.Note{{
		Code: containerrestart.NoteEnded, Object: s.request.Name, Text: "cannot be read: " + s.malformed.Error(),
	}}
}

// refuse ends a request that cannot be read, and drops what was known of it: that may be what cannot be read.
func (p *plan) refuse() *write.Write {
	return p.patch(write.Status, write.Fields{"metadata": p.metadata(nil), "status": map[string]any{
		"phase":          v1beta1.ContainerRecreateRequestCompleted,
		"completionTime": metav1.NewTime(p.now),
		"message":        p.Notes[0].Text,

		"containerRecreateStates": nil,
		"containerStatusSnapshot": nil,
		"conditions":              nil,
	}})
}

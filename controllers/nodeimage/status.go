package nodeimage

import (
	"fmt"

	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/write"
)

// writeStatus returns the write that ends pulls in place of the node.
func (p *plan) writeStatus() (*write.Write, error) {
	patch, err := statuspatch.NodeImage(p.image, p.decision.Status)
	if err != nil {
		return nil, err
	}
	data, err := patch.Data(p.image)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return &write.Write{
		Verb: write.Patch, Object: p.images.Named(p.key()), Subresource: write.Status,
		Type: patch.Type(), Body: write.Bytes(data),
	}, nil
}

package nodeimage

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// writeStatus returns the write that ends pulls in place of the node.
func writeStatus(
	images stored.Kind, image *v1beta1.NodeImage, status *v1beta1.NodeImageStatus,
) (*write.Write, error) {
	patch, err := stored.NodeImageStatus(image, status)
	if err != nil {
		return nil, err
	}
	data, err := patch.Data(image)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return &write.Write{
		Verb: write.Patch, Object: images.Named(types.NamespacedName{Name: image.Name}), Subresource: write.Status,
		Type: patch.Type(), Body: write.Bytes(data),
	}, nil
}

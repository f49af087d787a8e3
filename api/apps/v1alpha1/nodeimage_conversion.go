package v1alpha1

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
)

// ConvertTo fills hub with n.
func (n *NodeImage) ConvertTo(hub *v1beta1.NodeImage) error {
	return roundtrip.Up(n, hub, nodeImageUp, nodeImageDown)
}

// ConvertFrom fills n with hub.
func (n *NodeImage) ConvertFrom(hub *v1beta1.NodeImage) error {
	return roundtrip.Down(hub, n, nodeImageUp, nodeImageDown)
}

func nodeImageUp(n *NodeImage, hub *v1beta1.NodeImage) {
	hub.ObjectMeta = n.ObjectMeta
	hub.Status = n.Status
	hub.Spec = v1beta1.NodeImageSpec{}
	if n.Spec.Images == nil {
		return
	}
	hub.Spec.Images = make(map[string]v1beta1.ImageSpec, len(n.Spec.Images))
	for name, image := range n.Spec.Images {
		var secrets []v1beta1.ReferenceObject
		for _, s := range image.PullSecrets {
			secrets = append(secrets, v1beta1.ReferenceObject{Namespace: s.Namespace, Name: s.Name})
		}
		hub.Spec.Images[name] = v1beta1.ImageSpec{PullSecrets: secrets, Tags: image.Tags, SandboxConfig: image.SandboxConfig}
	}
}

func nodeImageDown(hub *v1beta1.NodeImage, n *NodeImage) {
	n.ObjectMeta = hub.ObjectMeta
	n.Status = hub.Status
	n.Spec = NodeImageSpec{}
	if hub.Spec.Images == nil {
		return
	}
	n.Spec.Images = make(map[string]ImageSpec, len(hub.Spec.Images))
	for name, image := range hub.Spec.Images {
		var secrets []ReferenceObject
		for _, s := range image.PullSecrets {
			secrets = append(secrets, ReferenceObject{Namespace: s.Namespace, Name: s.Name})
		}
		n.Spec.Images[name] = ImageSpec{PullSecrets: secrets, Tags: image.Tags, SandboxConfig: image.SandboxConfig}
	}
}

package kruise

// A node with this label runs no daemon of ours. The label is copied to some objects that are about such a node.
const (
	// NodeTypeKey is the label's key.
	NodeTypeKey = "type"
	// NodeTypeVirtualKubelet is its value.
	NodeTypeVirtualKubelet = "virtual-kubelet"
)

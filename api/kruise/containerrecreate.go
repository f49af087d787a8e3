package kruise

// ContainerRecreateRequestUserAgent is, in the message of the pod's condition KruisePodReady, who made the pod
// not ready for a ContainerRecreateRequest. The key next to it is namespace/name of the request.
const ContainerRecreateRequestUserAgent = "ContainerRecreateRequest"

package serving

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Why Pods refuses a client.
const (
	isPod    = "the client is a pod: only API servers are answered"
	isUnseen = "the address is of an IP family in which pods cannot be looked up"
)

// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,namespace=default,resources=endpointslices,verbs=list

// Addresses looks clients up by their addresses.
type Addresses struct {
	reader client.Reader
	spared []string
	around *surroundings
}

// Pods returns the addresses of pods, nodes and API servers. Its reader must read live.
//
// The pods in the spared namespaces, in which API servers or their tunnels may run, are answered.
func Pods(reader client.Reader, spared ...string) *Addresses {
	return &Addresses{reader: reader, spared: spared, around: &surroundings{reader: reader, spared: spared}}
}

// Check is for Clients.Check: it refuses an address that is that of a pod, unless the pod is in one of the spared
// namespaces. Known are also nodes, by their objects and by the pods in their network, and the endpoints of the Service
// kubernetes.
//
// API servers find a pod by the first of its addresses alone. Other addresses of the family that pods have second are
// refused.
func (a *Addresses) Check(ctx context.Context, address netip.Addr) (Verdict, error) {
	var pods corev1.PodList
	at := fields.OneTermEqualSelector("status.podIP", address.String())
	// From the cache of the API server: one without an index of addresses would read all pods from etcd.
	if err := a.reader.List(ctx, &pods, client.MatchingFieldsSelector{Selector: at}, cached()); err != nil {
		return Verdict{}, fmt.Errorf("list pods at %s: %w", address, err)
	}
	living := slices.DeleteFunc(pods.Items, ended)
	if slices.ContainsFunc(living, func(p corev1.Pod) bool {
		return !p.Spec.HostNetwork && !slices.Contains(a.spared, p.Namespace)
	}) {
		return Verdict{Why: isPod}, nil
	}
	if len(living) > 0 {
		return Verdict{}, nil
	}
	servers, err := servers(ctx, a.reader)
	if err != nil || slices.Contains(servers, address.String()) {
		return Verdict{}, err
	}
	return a.around.verdict(ctx, address), nil
}

// Known is for Clients.Known and Bounds.Known: it reports whether an address was that of an API server or of a node
// when these were last read, which the first call starts, and one in an hour. It does not wait, and an unknown address
// causes no read.
func (a *Addresses) Known(ctx context.Context, address netip.Addr) bool {
	return a.around.has(ctx, address)
}

// servers returns the addresses of API servers.
func servers(ctx context.Context, reader client.Reader) ([]string, error) {
	var found discoveryv1.EndpointSliceList
	of := client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}
	if err := reader.List(ctx, &found, client.InNamespace(metav1.NamespaceDefault), of); err != nil {
		return nil, fmt.Errorf("list API servers: %w", err)
	}
	var all []string
	for _, s := range found.Items {
		for _, e := range s.Endpoints {
			all = append(all, e.Addresses...)
		}
	}
	return all, nil
}

// cached reads from the cache of the API server.
func cached() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// ended reports whether a pod may still have an address that another one has now.
func ended(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

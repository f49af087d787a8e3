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

// Pods returns a check for Clients.Check: it refuses an address that is that of a pod, unless the pod is in one of the spared
// namespaces, in which API servers or their tunnels may run. Known are also nodes, by their objects and by the pods in their network, and
// the endpoints of the Service kubernetes.
//
// API servers find a pod by the first of its addresses alone. Other addresses of the family that pods have second are refused.
//
// The reader must read live.
func Pods(reader client.Reader, spared ...string) func(ctx context.Context, address netip.Addr) (Verdict, error) {
	around := &surroundings{reader: reader, spared: spared}
	return func(ctx context.Context, address netip.Addr) (Verdict, error) {
		var pods corev1.PodList
		at := fields.OneTermEqualSelector("status.podIP", address.String())
		// From the cache of the API server: one without an index of addresses would read all pods from etcd.
		if err := reader.List(ctx, &pods, client.MatchingFieldsSelector{Selector: at}, cached()); err != nil {
			return Verdict{}, fmt.Errorf("list pods at %s: %w", address, err)
		}
		living := slices.DeleteFunc(pods.Items, ended)
		if slices.ContainsFunc(living, func(p corev1.Pod) bool { return !p.Spec.HostNetwork && !slices.Contains(spared, p.Namespace) }) {
			return Verdict{Why: isPod}, nil
		}
		if len(living) > 0 {
			return Verdict{}, nil
		}
		is, err := server(ctx, reader, address)
		if err != nil || is {
			return Verdict{}, err
		}
		return around.verdict(ctx, address), nil
	}
}

// server reports whether an API server has the address.
func server(ctx context.Context, reader client.Reader, address netip.Addr) (bool, error) {
	var servers discoveryv1.EndpointSliceList
	of := client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}
	if err := reader.List(ctx, &servers, client.InNamespace(metav1.NamespaceDefault), of); err != nil {
		return false, fmt.Errorf("list API servers: %w", err)
	}
	return slices.ContainsFunc(servers.Items, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, address.String()) })
	}), nil
}

// cached reads from the cache of the API server.
func cached() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// ended reports whether a pod may still have an address that another one has now.
func ended(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

package process

import (
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// resizing is how an API server changes cpu and memory of running pods.
type resizing struct {
	// served means that the subresource pods/resize is on, which is the default since Kubernetes 1.33.
	served bool
	// pods means that the resources of a pod as a whole can change.
	pods bool
}

// resizingOf asks the API server.
func resizingOf(rc *rest.Config, hc *http.Client) (r resizing, err error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(rc, hc)
	if err != nil {
		return r, fmt.Errorf("make discovery client: %w", err)
	}
	v, err := d.ServerVersion()
	if err != nil {
		return r, fmt.Errorf("ask the API server's version: %w", err)
	}
	core, err := d.ServerResourcesForGroupVersion("v1")
	if err != nil {
		return r, fmt.Errorf("ask the API server's resources: %w", err)
	}
	r.pods = atLeast(v.GitVersion, 36)
	r.served = slices.ContainsFunc(core.APIResources, func(of metav1.APIResource) bool { return of.Name == "pods/resize" })
	return r, nil
}

// atLeast reports whether a version of Kubernetes is 1.minor or newer. One that cannot be read is old.
func atLeast(text string, minor uint) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.AtLeast(version.MajorMinor(1, minor))
}

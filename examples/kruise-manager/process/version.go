package process

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
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
	r.pods = atLeast(v, 1, 36)
	r.served = slices.ContainsFunc(core.APIResources, func(of metav1.APIResource) bool { return of.Name == "pods/resize" })
	return r, nil
}

// atLeast takes the version from its text, whose parts may have any suffix. One that cannot be read is old.
func atLeast(v *version.Info, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(v.GitVersion, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	gotMajor, gotMinor := leadingNumber(parts[0]), leadingNumber(parts[1])
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}

// leadingNumber is -1 where there is none.
func leadingNumber(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return -1
	}
	return n
}

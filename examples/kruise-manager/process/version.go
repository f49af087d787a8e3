package process

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// resizeInSpec asks the API server whether it is too old to have a subresource for changing resources in place.
func resizeInSpec(rc *rest.Config, hc *http.Client) (bool, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(rc, hc)
	if err != nil {
		return false, fmt.Errorf("make discovery client: %w", err)
	}
	v, err := d.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("ask the API server's version: %w", err)
	}
	return !atLeast(v, 1, 32), nil
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

// Package podhttp sends the HTTP requests of hooks and probes to containers, as kubelets do.
package podhttp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
)

// mostRedirects within a host are followed.
const mostRedirects = 10

// Client returns a client that asks pods directly, and does not verify their certificates, which are seldom any that
// could be.
func Client() *http.Client {
	return &http.Client{
		CheckRedirect: follow,
		Transport: &http.Transport{
			DisableKeepAlives: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
	}
}

// follow keeps a container from leading the node elsewhere: it has got the request, and that is what counts.
func follow(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= mostRedirects {
		return fmt.Errorf("stopped after %d redirects", mostRedirects)
	}
	return nil
}

// Request returns a request with headers, among which may be that of the host. The agent is the User-Agent where the
// headers have none.
func Request(ctx context.Context, url, agent string, headers []corev1.HTTPHeader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	for _, header := range headers {
		request.Header.Add(header.Name, header.Value)
	}
	for name, value := range map[string]string{"User-Agent": agent, "Accept": "*/*"} {
		if _, given := request.Header[name]; !given {
			request.Header.Set(name, value)
		}
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	return request, nil
}

package podprobe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/podhttp"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

// mostOutput of a probe is read.
const mostOutput = 10 << 10

// handlers run probes.
type handlers struct {
	runtime Runtime
	http    *http.Client
	grpc    *http.Client
}

func newHandlers(r Runtime) handlers {
	plain := new(http.Protocols)
	plain.SetUnencryptedHTTP2(true)
	return handlers{
		runtime: r,
		http:    podhttp.Client(),
		grpc: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, Protocols: plain},
		},
	}
}

// target is what a probe asks: a container by its ID, or the address of its pod.
type target struct {
	container, ip string
	timeout       time.Duration
}

// run runs a probe. An error says that it is not known what the probe found.
func (h handlers) run(ctx context.Context, p *v1alpha1.ContainerProbeSpec, at target) (podprobe.Result, error) {
	switch {
	case p.Exec != nil:
		return h.exec(ctx, p.Exec, at.container, at.timeout)
	case p.TCPSocket != nil:
		return dial(ctx, p.TCPSocket, at.ip, at.timeout)
	case p.HTTPGet != nil:
		return h.get(ctx, p.HTTPGet, at.ip, at.timeout)
	case p.GRPC != nil:
		return h.check(ctx, p.GRPC, at.ip, at.timeout)
	}
	return podprobe.Result{}, errors.New("the probe has no handler")
}

func (h handlers) exec(
	ctx context.Context, e *corev1.ExecAction, container string, timeout time.Duration,
) (podprobe.Result, error) {
	if len(e.Command) == 0 {
		return podprobe.Result{}, errors.New("the probe has no command")
	}
	output, err := h.runtime.Exec(ctx, container, cri.Command{Args: e.Command, Timeout: timeout, MaxOutput: mostOutput})
	switch {
	case errors.Is(err, cri.ErrExecTimeout):
		return podprobe.Result{Output: fmt.Sprintf("command timed out after %s", timeout)}, nil
	case err != nil:
		return podprobe.Result{}, fmt.Errorf("run command: %w", err)
	case output.ExitCode != 0:
		return podprobe.Result{Output: string(output.Stderr)}, nil
	}
	return podprobe.Result{Succeeded: true, Output: string(output.Stdout)}, nil
}

// addressOf returns where a probe asks: a port of the pod, never another host, for the daemon has the network of its
// node.
func addressOf(host, ip string, port intstr.IntOrString) (string, error) {
	switch {
	case host != "":
		return "", errors.New("the probe asks another host than its pod")
	case ip == "":
		return "", errors.New("the address of the pod is unknown")
	}
	return net.JoinHostPort(ip, strconv.Itoa(port.IntValue())), nil
}

func dial(ctx context.Context, t *corev1.TCPSocketAction, ip string, timeout time.Duration) (podprobe.Result, error) {
	address, err := addressOf(t.Host, ip, t.Port)
	if err != nil {
		return podprobe.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return podprobe.Result{Output: err.Error()}, nil
	}
	_ = connection.Close()
	return podprobe.Result{Succeeded: true}, nil
}

func (h handlers) get(
	ctx context.Context, g *corev1.HTTPGetAction, ip string, timeout time.Duration,
) (podprobe.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := requestOf(ctx, g, ip)
	if err != nil {
		return podprobe.Result{}, err
	}
	response, err := h.http.Do(request)
	if err != nil {
		return podprobe.Result{Output: err.Error()}, nil
	}
	defer response.Body.Close() //nolint:errcheck // nothing follows from it
	body, err := io.ReadAll(io.LimitReader(response.Body, mostOutput))
	if err != nil {
		return podprobe.Result{Output: err.Error()}, nil
	}
	switch code := response.StatusCode; {
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return podprobe.Result{Succeeded: true, Output: "Probe terminated redirects, Response body: " + string(body)}, nil
	case code >= http.StatusOK && code < http.StatusBadRequest:
		return podprobe.Result{Succeeded: true, Output: string(body)}, nil
	}
	return podprobe.Result{Output: fmt.Sprintf("HTTP probe failed with statuscode: %d", response.StatusCode)}, nil
}

func requestOf(ctx context.Context, g *corev1.HTTPGetAction, ip string) (*http.Request, error) {
	if port := g.Port.IntValue(); port < 1 || port > 65535 {
		return nil, fmt.Errorf("port %d is none", port)
	}
	address, err := addressOf(g.Host, ip, g.Port)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(g.Path)
	if err != nil {
		return nil, fmt.Errorf("parse path: %w", err)
	}
	scheme := strings.ToLower(string(g.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	// The path may be anything that parses, also a URL: only its path and query count.
	target := url.URL{Scheme: scheme, Host: address, Path: at.Path, RawPath: at.RawPath, RawQuery: at.RawQuery}
	if !strings.HasPrefix(target.Path, "/") {
		target.Path, target.RawPath = "/"+target.Path, ""
	}
	request, err := podhttp.Request(ctx, target.String(), "kube-probe", g.HTTPHeaders)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if accept := request.Header["Accept"]; accept[0] == "" {
		request.Header.Del("Accept")
	}
	return request, nil
}

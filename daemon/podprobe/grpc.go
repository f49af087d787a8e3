package podprobe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/internal/podprobe"
)

const (
	// healthMethod is that of the health checking protocol of gRPC.
	healthMethod = "/grpc.health.v1.Health/Check"
	// headerBytes begin each message of gRPC: whether it is compressed, and its length.
	headerBytes = 5
	// The key of the only field of a request, a string, and of an answer, a number.
	requestField, answerField = 0x0a, 0x08
	// serving is the status of a service that is healthy.
	serving = 1
)

// check asks for the health of a service. The protocol is two messages with one field each, over HTTP/2 without
// encryption, so that no client of gRPC is needed.
func (h handlers) check(
	ctx context.Context, g *corev1.GRPCAction, ip string, timeout time.Duration,
) (podprobe.Result, error) {
	address, err := addressOf("", ip, intstr.FromInt32(g.Port))
	if err != nil {
		return podprobe.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	service := ""
	if g.Service != nil {
		service = *g.Service
	}
	target := url.URL{Scheme: "http", Host: address, Path: healthMethod}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(),
		bytes.NewReader(healthRequest(service)))
	if err != nil {
		return podprobe.Result{}, fmt.Errorf("make request: %w", err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/grpc", "Te": "trailers", "User-Agent": "kube-probe",
	} {
		request.Header.Set(name, value)
	}
	response, err := h.grpc.Do(request)
	if err != nil {
		return podprobe.Result{Output: err.Error()}, nil
	}
	defer response.Body.Close() //nolint:errcheck // nothing follows from it
	body, err := io.ReadAll(io.LimitReader(response.Body, mostOutput))
	if err != nil {
		return podprobe.Result{Output: err.Error()}, nil
	}
	return healthResult(response, body), nil
}

// healthRequest is a message with the name of a service.
func healthRequest(service string) []byte {
	var field []byte
	if service != "" {
		field = append(binary.AppendUvarint([]byte{requestField}, uint64(len(service))), service...)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(field))), field...)
}

func healthResult(response *http.Response, body []byte) podprobe.Result {
	failed := func(format string, args ...any) podprobe.Result {
		return podprobe.Result{Output: "gRPC probe failed: " + fmt.Sprintf(format, args...)}
	}
	if response.StatusCode != http.StatusOK {
		return failed("HTTP status %d", response.StatusCode)
	}
	code, text := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message")
	if code == "" { // an answer without a message has it among its headers
		code, text = response.Header.Get("Grpc-Status"), response.Header.Get("Grpc-Message")
	}
	if code != "0" {
		return failed("status %q: %s", code, text)
	}
	status, err := healthStatus(body)
	switch {
	case err != nil:
		return failed("%v", err)
	case status != serving:
		return failed("the service has the health %d rather than %d, which is serving", status, serving)
	}
	return podprobe.Result{Succeeded: true, Output: "service is healthy"}
}

// healthStatus returns the status in an answer. An answer without fields has the status 0.
func healthStatus(body []byte) (uint64, error) {
	if len(body) < headerBytes || body[0] != 0 ||
		uint64(len(body)-headerBytes) != uint64(binary.BigEndian.Uint32(body[1:])) {
		return 0, errors.New("the answer is malformed")
	}
	message := body[headerBytes:]
	if len(message) == 0 {
		return 0, nil
	}
	status, n := binary.Uvarint(message[1:])
	if message[0] != answerField || n <= 0 || len(message) != 1+n {
		return 0, errors.New("the message of the answer is malformed")
	}
	return status, nil
}

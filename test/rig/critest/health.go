package critest

import (
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// ServeHealth serves the health checking protocol of gRPC on a port of this machine, until the end of the test. The
// services have the health that a test gives them; the service without a name is healthy.
func ServeHealth(t testing.TB, healthy map[string]bool) (port int) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	checks := health.NewServer()
	for service, is := range healthy {
		status := healthv1.HealthCheckResponse_NOT_SERVING
		if is {
			status = healthv1.HealthCheckResponse_SERVING
		}
		checks.SetServingStatus(service, status)
	}
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, checks)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("listening at %s", listener.Addr())
	}
	return address.Port
}

package plane

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/internal/pki"
)

// requests per second that the controllers may make: test clusters change a lot at once.
const requests, requestBurst = "--kube-api-qps=500", "--kube-api-burst=1000"

// startEtcd returns the URL of the started etcd.
func (p *Plane) startEtcd(ctx context.Context) (string, error) {
	client, err := FreePort()
	if err != nil {
		return "", err
	}
	peer, err := FreePort()
	if err != nil {
		return "", err
	}
	clientURL, peerURL := "http://127.0.0.1:"+strconv.Itoa(client), "http://127.0.0.1:"+strconv.Itoa(peer)
	data := filepath.Join(p.config.Dir, "etcd")
	if err := os.RemoveAll(data); err != nil { // of an earlier attempt
		return "", fmt.Errorf("empty the data of etcd: %w", err)
	}
	etcd, err := p.run("etcd", "--data-dir="+data, "--unsafe-no-fsync", "--quota-backend-bytes=8589934592",
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	return clientURL, etcd.Ready(ctx, func(ctx context.Context) error {
		return get(ctx, http.DefaultClient, clientURL+"/health")
	})
}

func (p *Plane) startAPIServer(ctx context.Context, etcd string, admin pki.Pair) error {
	serving, err := p.Authority.Serving("apiserver", p.config.Address, "127.0.0.1", "localhost", firstService,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return err
	}
	private, public, err := p.Authority.SigningKey("service-account")
	if err != nil {
		return err
	}
	args := []string{
		"--etcd-servers=" + etcd, "--bind-address=" + p.config.Address, "--advertise-address=" + p.config.Address,
		"--secure-port=" + strconv.Itoa(p.config.Port), "--tls-cert-file=" + serving.CertFile,
		"--tls-private-key-file=" + serving.KeyFile, "--client-ca-file=" + p.Authority.File,
		"--kubelet-client-certificate=" + admin.CertFile, "--kubelet-client-key=" + admin.KeyFile,
		"--kubelet-preferred-address-types=InternalIP", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + public,
		"--service-account-signing-key-file=" + private, "--service-cluster-ip-range=" + services,
		// Webhooks and aggregated APIs behind a Service are called at their endpoints: there is no kube-proxy.
		"--enable-aggregator-routing=true",
	}
	if strings.HasPrefix(p.config.Address, "127.") {
		// A loopback address is no valid endpoint of the kubernetes Service.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	if !p.config.Controllers && !p.config.Workloads {
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	server, err := p.run("kube-apiserver", append(args, p.config.APIServerFlags...)...)
	if err != nil {
		return err
	}
	client, err := clientOf(p.Authority, admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	return server.Ready(ctx, func(ctx context.Context) error { return get(ctx, client, p.Server+"/readyz") })
}

// startControllers starts what the configuration asks for beside the API server.
func (p *Plane) startControllers() error {
	switch {
	case p.config.Controllers:
		return p.startManager()
	case p.config.Workloads:
		args := append([]string{"--kubeconfig=" + p.Kubeconfig, requests, requestBurst}, p.config.ControllerFlags...)
		name := "kube-controllers"
		if p.config.Programs[name] == "" {
			name = "kube-controller-manager"
			args = append(args, "--controllers=deployment-controller,replicaset-controller,namespace-controller,"+
				"serviceaccount-controller,garbage-collector-controller", "--secure-port=0", "--leader-elect=false")
		}
		_, err := p.run(name, args...)
		return err
	}
	return nil
}

// startManager starts kube-controller-manager and kube-scheduler.
func (p *Plane) startManager() error {
	users := map[string]string{}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		pair, err := p.Authority.Client(name, "system:"+name)
		if err != nil {
			return err
		}
		users[name] = filepath.Join(p.config.Dir, name+".kubeconfig")
		if err := os.WriteFile(users[name], p.Authority.Kubeconfig(p.Server, pair), 0o600); err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	private := filepath.Join(p.config.Dir, "pki", "service-account.key")
	// No serving port: several planes may run side by side, and no client calls these two.
	args := []string{
		"--kubeconfig=" + users["kube-controller-manager"], "--secure-port=0", "--leader-elect=false",
		"--use-service-account-credentials=true", "--service-account-private-key-file=" + private,
		"--root-ca-file=" + p.Authority.File, requests, requestBurst,
	}
	if _, err := p.run("kube-controller-manager", append(args, p.config.ControllerFlags...)...); err != nil {
		return err
	}
	_, err := p.run("kube-scheduler", "--kubeconfig="+users["kube-scheduler"], "--secure-port=0", "--leader-elect=false",
		requests, requestBurst)
	return err
}

func clientOf(authority *pki.Authority, user pki.Pair) (*http.Client, error) {
	certificate, err := tls.X509KeyPair(user.Cert, user.Key)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: authority.Pool(), Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	}}}, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s: %s", url, response.Status, body)
	}
	return nil
}

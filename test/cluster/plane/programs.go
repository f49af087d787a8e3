package plane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/test/cluster/internal/pki"
)

// requests per second that the controllers may make: test clusters change a lot at once.
const requests, requestBurst = "--kube-api-qps=500", "--kube-api-burst=1000"

// tokenSigner is the name of the key that signs the tokens of service accounts.
const tokenSigner = "service-account"

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
		return ready(ctx, &rest.Config{Host: clientURL}, "/health")
	})
}

func (p *Plane) startAPIServer(ctx context.Context, etcd string, admin pki.Pair) error {
	serving, err := p.Authority.Serving("apiserver", p.config.Address, "127.0.0.1", "localhost", firstService,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return err
	}
	tokens, err := p.Authority.Serving(tokenSigner)
	if err != nil {
		return err
	}
	args := []string{
		"--etcd-servers=" + etcd, "--bind-address=" + p.config.Address, "--advertise-address=" + p.config.Address,
		"--secure-port=" + strconv.Itoa(p.config.Port), "--tls-cert-file=" + serving.CertFile,
		"--tls-private-key-file=" + serving.KeyFile, "--client-ca-file=" + p.Authority.File,
		"--kubelet-client-certificate=" + admin.CertFile, "--kubelet-client-key=" + admin.KeyFile,
		"--kubelet-preferred-address-types=InternalIP", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + tokens.CertFile,
		"--service-account-signing-key-file=" + tokens.KeyFile, "--service-cluster-ip-range=" + services,
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
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	return server.Ready(ctx, func(ctx context.Context) error { return ready(ctx, config, "/readyz") })
}

// startControllers starts what the configuration asks for beside the API server.
func (p *Plane) startControllers() error {
	switch {
	case p.config.Controllers:
		return p.startManager()
	case p.config.Workloads:
		args := append([]string{"--kubeconfig=" + p.Kubeconfig, requests, requestBurst}, p.config.ControllerFlags...)
		_, err := p.run("kube-controllers", args...)
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
	private := filepath.Join(p.config.Dir, "pki", tokenSigner+".key")
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

// ready returns an error until a server answers well at a path.
func ready(ctx context.Context, server *rest.Config, path string) error {
	client, err := discovery.NewDiscoveryClientForConfig(server)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if body, err := client.RESTClient().Get().AbsPath(path).DoRaw(ctx); err != nil {
		return fmt.Errorf("get %s: %w: %s", path, err, body)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	system = "kruise-system"
	// scrapes is the configuration of Prometheus for one set of targets, whose labels are those that config/monitoring and
	// the operator of Prometheus give them.
	scrapes = `
global: {scrape_interval: 5s, scrape_timeout: 5s}
scrape_configs: [{job_name: cluster, honor_labels: true, follow_redirects: false}]
`
	// discovery is how often targets are looked for.
	discovery = 5 * time.Second
)

// recorder stores metrics of a cluster.
type recorder struct {
	config *rest.Config
	client kubernetes.Interface
	// objects serves the metrics of objects.
	objects http.Handler
	logger  *slog.Logger
}

func newRecorder(kubeconfig, objects string, logger *slog.Logger) (*recorder, error) {
	of, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	of.QPS = -1
	client, err := kubernetes.NewForConfig(of)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	stand, err := newObjects(of, objects)
	if err != nil {
		return nil, err
	}
	return &recorder{config: of, client: client, objects: stand, logger: logger}, nil
}

// record scrapes for a time. All that runs in the cluster is reached through the API server.
func (r *recorder) record(ctx context.Context, to storage.Appendable, took time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, took)
	defer cancel()
	address, stop, err := r.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	loaded, err := config.Load(scrapes, r.logger)
	if err != nil {
		return fmt.Errorf("configure scrapes: %w", err)
	}
	options := &scrape.Options{DiscoveryReloadInterval: model.Duration(discovery)}
	manager, err := scrape.NewManager(options, r.logger, nil, to, nil, prometheus.NewRegistry())
	if err != nil {
		return fmt.Errorf("make scrapes: %w", err)
	}
	if err := manager.ApplyConfig(loaded); err != nil {
		return fmt.Errorf("configure scrapes: %w", err)
	}
	targets := make(chan map[string][]*targetgroup.Group)
	go func() { _ = manager.Run(targets) }()
	defer manager.Stop()
	again := time.NewTicker(discovery)
	defer again.Stop()
	for ctx.Err() == nil {
		found, err := r.targets(ctx, address)
		if err != nil {
			r.logger.Warn("Skipped discovery", "error", err)
		} else {
			targets <- map[string][]*targetgroup.Group{"cluster": found}
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return ctx.Err()
}

// serve listens for the scrapes: it forwards what is of the API server, and has the metrics of objects.
func (r *recorder) serve(ctx context.Context) (address string, stop func(), err error) {
	transport, err := rest.TransportFor(r.config)
	if err != nil {
		return "", nil, fmt.Errorf("reach the API server: %w", err)
	}
	host, err := url.Parse(r.config.Host)
	if err != nil {
		return "", nil, fmt.Errorf("reach the API server: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", r.objects)
	mux.Handle("/api/", &httputil.ReverseProxy{
		Transport: transport, Rewrite: func(request *httputil.ProxyRequest) { request.SetURL(host) },
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for scrapes: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), func() { _ = server.Close() }, nil
}

// targets are the managers and daemons, the kubelets with the containers of their nodes, and the objects.
func (r *recorder) targets(ctx context.Context, address string) ([]*targetgroup.Group, error) {
	pods, err := r.client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	nodes, err := r.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	group := func(path string, labels model.LabelSet) *targetgroup.Group {
		return &targetgroup.Group{Source: path, Labels: labels, Targets: []model.LabelSet{{
			model.AddressLabel: model.LabelValue(address), model.MetricsPathLabel: model.LabelValue(path),
		}}}
	}
	found := []*targetgroup.Group{group("/metrics", model.LabelSet{"job": "kube-state-metrics"})}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		job, port := "kruise-controller-manager", "8080"
		if pod.Labels["control-plane"] == "daemon" {
			job, port = "daemon", "10221"
		}
		found = append(found, group("/api/v1/namespaces/"+system+"/pods/"+pod.Name+":"+port+"/proxy/metrics", model.LabelSet{
			"job": model.LabelValue(job), "namespace": system, "pod": model.LabelValue(pod.Name),
			"node": model.LabelValue(pod.Spec.NodeName),
		}))
	}
	for _, node := range nodes.Items {
		found = append(found, group("/api/v1/nodes/"+node.Name+"/proxy/metrics/cadvisor", model.LabelSet{
			"job": "kubelet", "node": model.LabelValue(node.Name),
		}))
	}
	return found, nil
}

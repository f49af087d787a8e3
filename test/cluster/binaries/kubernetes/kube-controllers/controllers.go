package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// The numbers of workers and the periods are the defaults of kube-controller-manager.
const (
	deploymentWorkers, replicaSetWorkers, namespaceWorkers, collectorWorkers = 5, 5, 10, 20

	resync          = 12 * time.Hour
	namespaceResync = 5 * time.Minute
	discoveryPeriod = 30 * time.Second
)

// setUp is what constructors of controllers share.
type setUp struct {
	config    *rest.Config
	informers informers.SharedInformerFactory
	// started is closed when the informers run.
	started chan struct{}
}

// as returns the configuration of one controller. Its user agent is the name by which audit logs show the controller.
func (s setUp) as(controller string) *rest.Config {
	own := rest.CopyConfig(s.config)
	own.UserAgent = controller
	return own
}

// typed is as with the client of the built-in kinds, which sends protobuf.
func (s setUp) typed(controller string) (*kubernetes.Clientset, error) {
	own := s.as(controller)
	own.ContentType = "application/vnd.kubernetes.protobuf"
	own.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", controller, err)
	}
	return client, nil
}

// start runs the controllers until the context ends.
func start(ctx context.Context, config *rest.Config) error {
	s := setUp{config: config, started: make(chan struct{})}
	shared, err := s.typed("shared-informers")
	if err != nil {
		return err
	}
	s.informers = informers.NewSharedInformerFactory(shared, resync)
	var loops []func(context.Context)
	for _, constructor := range []func(context.Context, setUp) (func(context.Context), error){
		deployments, replicaSets, namespaces, serviceAccounts, collector,
	} {
		loop, err := constructor(ctx, s)
		if err != nil {
			return err
		}
		loops = append(loops, loop)
	}
	for _, loop := range loops {
		go loop(ctx)
	}
	s.informers.Start(ctx.Done())
	close(s.started)
	<-ctx.Done()
	return nil
}

func deployments(ctx context.Context, s setUp) (func(context.Context), error) {
	client, err := s.typed("deployment-controller")
	if err != nil {
		return nil, err
	}
	apps := s.informers.Apps().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(),
		s.informers.Core().V1().Pods(), client)
	if err != nil {
		return nil, fmt.Errorf("make controller of Deployments: %w", err)
	}
	return func(ctx context.Context) { c.Run(ctx, deploymentWorkers) }, nil
}

func replicaSets(ctx context.Context, s setUp) (func(context.Context), error) {
	client, err := s.typed("replicaset-controller")
	if err != nil {
		return nil, err
	}
	c := replicaset.NewReplicaSetController(ctx, s.informers.Apps().V1().ReplicaSets(), s.informers.Core().V1().Pods(),
		client, replicaset.BurstReplicas)
	return func(ctx context.Context) { c.Run(ctx, replicaSetWorkers) }, nil
}

func namespaces(ctx context.Context, s setUp) (func(context.Context), error) {
	const name = "namespace-controller"
	client, err := s.typed(name)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(s.as(name))
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", name, err)
	}
	c := namespace.NewNamespaceController(ctx, client, meta, client.Discovery().ServerPreferredNamespacedResources,
		s.informers.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	return func(ctx context.Context) { c.Run(ctx, namespaceWorkers) }, nil
}

func serviceAccounts(ctx context.Context, s setUp) (func(context.Context), error) {
	client, err := s.typed("service-account-controller")
	if err != nil {
		return nil, err
	}
	core := s.informers.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(),
		client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, fmt.Errorf("make controller of service accounts: %w", err)
	}
	return func(ctx context.Context) { c.Run(ctx, 1) }, nil
}

func collector(ctx context.Context, s setUp) (func(context.Context), error) {
	const name = "generic-garbage-collector"
	client, err := s.typed(name)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(s.as(name))
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", name, err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	factory := informerfactory.NewInformerFactory(s.informers, metadatainformer.NewSharedInformerFactory(meta, resync))
	c, err := garbagecollector.NewGarbageCollector(ctx, client, meta, mapper, garbagecollector.DefaultIgnoredResources(),
		factory, s.started)
	if err != nil {
		return nil, fmt.Errorf("make garbage collector: %w", err)
	}
	return func(ctx context.Context) {
		go c.Sync(ctx, client.Discovery(), discoveryPeriod)
		c.Run(ctx, collectorWorkers, discoveryPeriod)
	}, nil
}

package sidecars_test //nolint:testableexamples // it wants a cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	admission "github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// The namespace of the manager, the same for all parts.
const namespace = "platform"

// It wants a cluster, and there what the package comment lists.
func Example() {
	run := func(ctx context.Context) error {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
			Scheme:         scheme,
			Cache:          cache.Options{DefaultTransform: cache.TransformStripManagedFields()}, // a third of each pod
			LeaderElection: true, LeaderElectionID: "sidecars", LeaderElectionNamespace: namespace,
			// And a WebhookServer with your certificate.
		})
		if err != nil {
			return err
		}
		if err := addWebhooks(mgr); err != nil {
			return err
		}
		if err := addReconcilers(ctx, mgr); err != nil {
			return err
		}
		// Your own controllers go here.
		return mgr.Start(ctx)
	}
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Println(err)
	}
}

// addWebhooks adds those of new pods and of SidecarSets.
func addWebhooks(mgr ctrl.Manager) error {
	options := pod.Options{Sidecars: pod.SidecarOptions{Namespace: namespace}}
	steps, err := pod.FromManager(mgr, options)
	if err != nil {
		return err
	}
	pods, err := pod.New(steps, options)
	if err != nil {
		return err
	}
	if err := pods.SetupWithManager(mgr); err != nil {
		return err
	}
	// This one reads past the cache, where it would start a watch of all that it reads by name.
	live, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return err
	}
	sets, err := admission.New(live, mgr.GetCache(), admission.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	return sets.SetupWithManager(mgr)
}

// addReconcilers adds that of SidecarSets, and that of the entries by which pods are sent to their webhook.
func addReconcilers(ctx context.Context, mgr ctrl.Manager) error {
	sets, err := sidecarset.New(mgr.GetClient(), sidecarset.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	if err := sets.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 3}); err != nil {
		return err
	}
	entries, err := podscope.New(mgr.GetClient(), podscope.Options{Namespace: namespace, Service: podscope.DefaultService})
	if err != nil {
		return err
	}
	return entries.SetupWithManager(ctx, mgr, controller.Options{})
}

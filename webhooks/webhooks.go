package webhooks

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// Options of AddToManager. The zero value adds all webhooks as the reference has them.
type Options struct {
	// CloneSet is for the webhooks of CloneSets.
	CloneSet cloneset.Options
	// ImagePull is for those of ImagePullJobs, ImageListPullJobs and NodeImages.
	ImagePull imagepull.Options
	// ContainerRecreateRequest is for that of ContainerRecreateRequests.
	ContainerRecreateRequest containerrecreaterequest.Options
	// Pod is for that of new pods.
	Pod pod.Options
	// NoPods leaves that of new pods out.
	NoPods bool
	// SidecarSet is for those of SidecarSets.
	SidecarSet sidecarset.Options
}

// The names of the generated configurations:
//
// +kubebuilder:webhookconfiguration:mutating=true,name=kruise-mutating-webhook-configuration
// +kubebuilder:webhookconfiguration:mutating=false,name=kruise-validating-webhook-configuration

// list has all webhooks. To add one, add its options to Options and a line here.
func list() []entry {
	return []entry{
		{"conversion", addConversion},
		{"cloneset", addCloneSet},
		{"imagepull", addImagePull},
		{"containerrecreaterequest", addContainerRecreateRequest},
		{"pod", addPod},
		{"sidecarset", addSidecarSet},
	}
}

// entry is a webhook in the list.
type entry struct {
	name string
	add  func(mgr ctrl.Manager, o Options) error
}

// AddToManager adds all webhooks. It must come before the manager starts.
func AddToManager(mgr ctrl.Manager, o Options) error {
	for _, e := range list() {
		if err := e.add(mgr, o); err != nil {
			return fmt.Errorf("add webhook %s: %w", e.name, err)
		}
	}
	return nil
}

func addConversion(mgr ctrl.Manager, _ Options) error {
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	return nil
}

func addCloneSet(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := cloneset.New(c, o.CloneSet)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addImagePull(mgr ctrl.Manager, o Options) error {
	return imagepull.New(o.ImagePull).SetupWithManager(mgr)
}

func addContainerRecreateRequest(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := containerrecreaterequest.New(c, o.ContainerRecreateRequest)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addPod(mgr ctrl.Manager, o Options) error {
	if o.NoPods {
		return nil
	}
	lookups, err := pod.FromManager(mgr, o.Pod)
	if err != nil {
		return err
	}
	w, err := pod.New(lookups, o.Pod)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func addSidecarSet(mgr ctrl.Manager, o Options) error {
	c, err := live(mgr)
	if err != nil {
		return err
	}
	w, err := sidecarset.New(c, mgr.GetCache(), o.SidecarSet)
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

// live is a client past the cache, which would start a watch of all that is looked up.
func live(mgr ctrl.Manager) (client.Client, error) {
	c, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

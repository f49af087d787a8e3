package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/containermeta"
	"github.com/kruisekit/kruisekit/daemon/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/imagepull"
	"github.com/kruisekit/kruisekit/daemon/podprobe"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Node is what a daemon works on.
type Node struct {
	// Name of the node.
	Name string
	// Runtimes of the node. Images are pulled with the first.
	Runtimes *cri.Runtimes
}

// Options of a daemon. The zero value is as the reference has it.
type Options struct {
	// Controller gives what controller-runtime asks of each part by its name; nil for the defaults. A rate limiter in it
	// must be a new one each time.
	Controller func(name string) controller.Options
	// LeftOut connects AddToManager with Checks: a check of a part that is left out is for the first 15 seconds an
	// error. Nil leaves these checks out.
	LeftOut *LeftOut
	// Registerer gets the gauge of the parts that are left out; nil for no gauge.
	Registerer prometheus.Registerer
	// WithoutPods leaves out what needs the pods of the node: they are not watched then.
	WithoutPods bool
	// ImagePull is for what pulls images.
	ImagePull imagepull.Options
	// ContainerRestart is for what restarts containers as ContainerRecreateRequests ask for.
	ContainerRestart containerrestart.Options
	// ContainerMeta is for the part that reports containers, and restarts those whose environment has changed.
	ContainerMeta containermeta.Options
	// PodProbe is for the part that runs the probes of PodProbeMarkers, and WithoutProbes leaves it out.
	PodProbe      podprobe.Options
	WithoutProbes bool
}

// list has all parts of a daemon. To add one, add its options to Options and an entry here.
func list(n Node, o Options) []part {
	requests := stored.Untyped(appsv1beta1.GroupVersion.WithKind("ContainerRecreateRequest")) // as its part reads them
	return []part{
		{
			name:   "imagepull",
			object: &appsv1beta1.NodeImage{},
			check:  "nodeImageInformerSynced",
			make:   newImagePull,
		},
		{
			name:   "containerrestart",
			object: requests,
			check:  "crrInformerSynced",
			skip:   unless(isLabel(n.Name), "requests cannot have the name of the node in a label"),
			make:   newContainerRestart,
		},
		{
			name:   "containermeta",
			object: &corev1.Pod{},
			check:  "podInformerSynced",
			skip:   unless(!o.WithoutPods, "pods are not watched"),
			make:   newContainerMeta,
		},
		{
			name:   "podprobe",
			object: &appsv1alpha1.NodePodProbe{},
			check:  "nodePodProbeInformerSynced",
			skip:   unless(!o.WithoutProbes, "probes are off"),
			make:   newPodProbe,
		},
	}
}

func newImagePull( //nolint:ireturn // one of the list
	mgr ctrl.Manager, n Node, o Options,
) (reconciler, error) {
	return imagepull.New(mgr.GetClient(), n.Name, n.Runtimes.Default(), o.ImagePull)
}

func newContainerRestart( //nolint:ireturn // one of the list
	mgr ctrl.Manager, n Node, o Options,
) (reconciler, error) {
	o.ContainerRestart.NoPods = o.ContainerRestart.NoPods || o.WithoutPods
	return containerrestart.New(mgr.GetClient(), n.Name, n.Runtimes.Found, o.ContainerRestart)
}

func newContainerMeta( //nolint:ireturn // one of the list
	mgr ctrl.Manager, n Node, o Options,
) (reconciler, error) {
	return containermeta.New(mgr.GetClient(), n.Name, n.Runtimes.Found, o.ContainerMeta)
}

func newPodProbe( //nolint:ireturn // one of the list
	mgr ctrl.Manager, n Node, o Options,
) (reconciler, error) {
	return podprobe.New(mgr.GetClient(), n.Name, n.Runtimes.Default(), o.PodProbe)
}

// part of the daemon in the list.
type part struct {
	name string
	// object is of the kind that it watches, which must be installed.
	object client.Object
	// check is the name of the check that its objects are in the cache.
	check string
	// skip says why it is left out; empty for a part that is not.
	skip string
	make func(mgr ctrl.Manager, n Node, o Options) (reconciler, error)
}

type reconciler interface {
	SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error
}

// AddToManager adds the parts. It must come before the manager starts. A part whose kind is not installed is added when
// it is: the manager looks again while it runs.
func AddToManager(ctx context.Context, mgr ctrl.Manager, n Node, o Options) error {
	return add(ctx, mgr, target{n, o, list(n, o)})
}

// target is what parts are added for.
type target struct {
	Node
	Options
	all []part
}

func (t target) validate() error {
	if t.Name == "" {
		return errors.New("daemon: the name of the node is needed")
	}
	if t.Runtimes == nil || len(t.Runtimes.Found) == 0 {
		return errors.New("daemon: a container runtime is needed")
	}
	return nil
}

func add(ctx context.Context, mgr ctrl.Manager, t target) error {
	if err := t.validate(); err != nil {
		return err
	}
	left, err := newGauge(t.Registerer)
	if err != nil {
		return err
	}
	var later []binding.Part
	err = t.each(mgr, func(p part, why absence) error {
		if why.reason != "" {
			log.FromContext(ctx).Info("Part left out", "part", p.name, "reason", why.reason)
		}
		switch {
		case !why.kind.Empty():
			left.Set(p.name, true)
			later = append(later, t.part(mgr, p, why.kind, left))
			return nil
		case why.reason != "":
			return nil
		}
		left.Set(p.name, false)
		return t.add(ctx, mgr, p)
	})
	if err != nil {
		return err
	}
	return t.LeftOut.waiting().AddTo(ctx, mgr, later)
}

func (t target) add(ctx context.Context, mgr ctrl.Manager, p part) error {
	r, err := p.make(mgr, t.Node, t.Options)
	if err != nil {
		return fmt.Errorf("add part %s: %w", p.name, err)
	}
	var c controller.Options
	if t.Controller != nil {
		c = t.Controller(p.name)
	}
	if err := r.SetupWithManager(ctx, mgr, c); err != nil {
		return fmt.Errorf("add part %s: %w", p.name, err)
	}
	return nil
}

// absence is why a part is left out; empty for one that is not.
type absence struct {
	reason string
	// kind is the one that is missing, which may be installed later.
	kind schema.GroupVersionKind
}

// each visits all parts.
func (t target) each(mgr ctrl.Manager, visit func(p part, why absence) error) error {
	for _, p := range t.all {
		why := absence{reason: p.skip}
		if why.reason == "" {
			kind, err := apiutil.GVKForObject(p.object, mgr.GetScheme())
			if err != nil {
				return fmt.Errorf("add part %s: %w", p.name, err)
			}
			installed, err := binding.Installed(mgr.GetRESTMapper(), kind)
			if err != nil {
				return err
			}
			if !installed {
				why = absence{"its kind is not installed: " + kind.String(), kind}
			}
		}
		if err := visit(p, why); err != nil {
			return err
		}
	}
	return nil
}

// unless returns a reason where something is not so.
func unless(is bool, reason string) string {
	if is {
		return ""
	}
	return reason
}

package controllers

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/advancedcronjob"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob"
	"github.com/kruisekit/kruisekit/controllers/imagelistpulljob"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/controllers/launchpriority"
	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/controllers/nodepodprobe"
	"github.com/kruisekit/kruisekit/controllers/persistentpodstate"
	"github.com/kruisekit/kruisekit/controllers/podprobemarker"
	"github.com/kruisekit/kruisekit/controllers/podreadiness"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/controllers/podunavailablebudget"
	"github.com/kruisekit/kruisekit/controllers/resourcedistribution"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment"
	"github.com/kruisekit/kruisekit/controllers/workloadspread"
	"github.com/kruisekit/kruisekit/internal/binding"
)

// Options of AddToManager. The zero value adds all reconcilers as the reference has them.
type Options struct {
	// Names choose: "*" is all of the reference, "x" is one, "-x" leaves one out. Empty is "*". The reconciler native,
	// which the reference does not have, must be named.
	Names []string
	// Controller gives what controller-runtime asks of each by its name; nil for the defaults. A rate limiter in it must
	// be a new one each time.
	Controller func(name string) controller.Options
	// LeftOut reports the reconcilers whose kinds are not installed; nil for no report. The log names them in any case.
	LeftOut *LeftOut
	// Registerer gets the metrics of all reconcilers: which are left out, and which objects stand still. Nil is for
	// none. The metrics of single reconcilers are in their options.
	Registerer prometheus.Registerer
	// AdvancedCronJob is for the reconciler of AdvancedCronJobs.
	AdvancedCronJob advancedcronjob.Options
	// BroadcastJob is for the reconciler of BroadcastJobs.
	BroadcastJob broadcastjob.Options
	// CloneSet is for the reconciler of CloneSets.
	CloneSet cloneset.Options
	// DaemonSet is for the reconciler of DaemonSets.
	DaemonSet daemonset.Options
	// EphemeralJob is for the reconciler of EphemeralJobs.
	EphemeralJob ephemeraljob.Options
	// LaunchPriority is for the reconciler that starts containers of pods in their order.
	LaunchPriority launchpriority.Options
	// ContainerRecreateRequest is for the reconciler of ContainerRecreateRequests.
	ContainerRecreateRequest containerrecreaterequest.Options
	// ImageListPullJob is for the reconciler of ImageListPullJobs.
	ImageListPullJob imagelistpulljob.Options
	// ImagePullJob is for the reconciler of ImagePullJobs.
	ImagePullJob imagepulljob.Options
	// Native is for the reconciler of StatefulSets and DaemonSets of apps/v1 that ask for updates in place.
	Native native.Options
	// NodeImage is for the reconciler of NodeImages.
	NodeImage nodeimage.Options
	// NodePodProbe is for the reconciler of NodePodProbes, which also marks the pods of nodes with a daemon.
	NodePodProbe nodepodprobe.Options
	// PodProbeMarker is for the reconciler of PodProbeMarkers.
	PodProbeMarker podprobemarker.Options
	// PersistentPodState is for the reconciler of PersistentPodStates.
	PersistentPodState persistentpodstate.Options
	// PodReadiness is for the reconciler that sets KruisePodReady of new pods.
	PodReadiness podreadiness.Options
	// SidecarTerminator is for the reconciler that stops sidecars of finished pods.
	SidecarTerminator sidecarterminator.Options
	// PodScope is for the reconcilers of the entries of the webhooks of new pods (podscope) and of disruptions
	// (disruptionscope).
	PodScope podscope.Options
	// PodUnavailableBudget is for the reconciler of PodUnavailableBudgets.
	PodUnavailableBudget podunavailablebudget.Options
	// ResourceDistribution is for the reconciler of ResourceDistributions.
	ResourceDistribution resourcedistribution.Options
	// SidecarSet is for the reconciler of SidecarSets.
	SidecarSet sidecarset.Options
	// StatefulSet is for the reconciler of StatefulSets.
	StatefulSet statefulset.Options
	// UnitedDeployment is for the reconciler of UnitedDeployments.
	UnitedDeployment uniteddeployment.Options
	// WorkloadSpread is for the reconciler of WorkloadSpreads.
	WorkloadSpread workloadspread.Options

	// held holds the reconcilers that create pods; nil for none.
	held *gate
}

// list has all reconcilers. To add one, add its options to Options and a line here.
func list(o *Options) []entry {
	alpha, apps := v1alpha1.GroupVersion.WithKind, v1beta1.GroupVersion.WithKind
	admission := admissionregistrationv1.SchemeGroupVersion.WithKind
	pods := corev1.SchemeGroupVersion.WithKind("Pod")
	return []entry{
		of("advancedcronjob", apps("AdvancedCronJob"), advancedcronjob.New, &o.AdvancedCronJob),
		of("broadcastjob", apps("BroadcastJob"), broadcastjob.New, &o.BroadcastJob),
		of("cloneset", apps("CloneSet"), cloneset.New, &o.CloneSet),
		of("containerlaunchpriority", pods, launchpriority.New, &o.LaunchPriority),
		of("containerrecreaterequest", apps("ContainerRecreateRequest"),
			containerrecreaterequest.New, &o.ContainerRecreateRequest),
		of("daemonset", apps("DaemonSet"), daemonset.New, &o.DaemonSet),
		of("disruptionscope", admission("ValidatingWebhookConfiguration"), podscope.NewDisruptions, &o.PodScope),
		of("ephemeraljob", alpha("EphemeralJob"), ephemeraljob.New, &o.EphemeralJob),
		of("imagelistpulljob", apps("ImageListPullJob"), imagelistpulljob.New, &o.ImageListPullJob),
		of("imagepulljob", apps("ImagePullJob"), imagepulljob.New, &o.ImagePullJob),
		of(nameNative, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), native.New, &o.Native),
		of("nodeimage", apps("NodeImage"), nodeimage.New, &o.NodeImage),
		of("nodepodprobe", alpha("NodePodProbe"), nodepodprobe.New, &o.NodePodProbe),
		of("podprobemarker", alpha("PodProbeMarker"), podprobemarker.New, &o.PodProbeMarker),
		of("persistentpodstate", apps("PersistentPodState"), persistentpodstate.New, &o.PersistentPodState),
		of("podreadiness", pods, podreadiness.New, &o.PodReadiness),
		of("podscope", admission("MutatingWebhookConfiguration"), podscope.New, &o.PodScope),
		of("podunavailablebudget", policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget"),
			podunavailablebudget.New, &o.PodUnavailableBudget),
		of("resourcedistribution", apps("ResourceDistribution"), resourcedistribution.New, &o.ResourceDistribution),
		of("sidecarset", apps("SidecarSet"), sidecarset.New, &o.SidecarSet),
		of("sidecarterminator", apps("ContainerRecreateRequest"), sidecarterminator.New, &o.SidecarTerminator),
		of("statefulset", apps("StatefulSet"), statefulset.New, &o.StatefulSet),
		of("uniteddeployment", apps("UnitedDeployment"), uniteddeployment.New, &o.UnitedDeployment),
		of("workloadspread", apps("WorkloadSpread"), workloadspread.New, &o.WorkloadSpread),
	}
}

// nameNative is the name of the reconciler that the reference does not have.
const nameNative = "native"

// entry is a reconciler in the list.
type entry struct {
	name string
	// kind must be installed.
	kind schema.GroupVersionKind
	make func(client.Client) (reconciler, error)
}

// of returns the entry of a reconciler. The options are read when it is made.
func of[O any, R reconciler](
	name string, kind schema.GroupVersionKind, create func(client.Client, O) (R, error), o *O,
) entry {
	return entry{name, kind, func(c client.Client) (reconciler, error) { return create(c, *o) }}
}

type reconciler interface {
	SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error
}

// Names of all reconcilers.
func Names() []string { return names(list(&Options{})) }

// Check says whether a choice names only what there is.
func Check(choice []string) error {
	_, err := chosen(list(&Options{}), choice)
	return err
}

// AddToManager adds the chosen reconcilers. It must come before the manager starts. A reconciler whose kind is not
// installed is added when it is: the manager looks again while it runs. Beside podscope, reconcilers that create pods
// wait up to 10 seconds until API servers send new pods to the webhook.
func AddToManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	return add(ctx, mgr, &o, list(&o))
}

func add(ctx context.Context, mgr ctrl.Manager, o *Options, all []entry) error {
	wanted, err := chosen(all, o.Names)
	if err != nil {
		return err
	}
	left, err := newGauge(o.Registerer)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(wanted, func(e entry) bool { return e.name == "podscope" }) {
		o.held = newGate(maxHeld)
		o.PodScope.InForce = o.held.opening(o.PodScope.InForce)
	}
	var later []binding.Part
	for _, e := range wanted {
		part := e.part(mgr, o, left)
		missing, err := binding.Missing(mgr.GetRESTMapper(), part)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			log.FromContext(ctx).Info("Controller left out: its kind is not installed",
				"controller", e.name, "kinds", missing)
			left.Set(e.name, true)
			later = append(later, part)
			continue
		}
		if err := e.add(ctx, mgr, o); err != nil {
			return fmt.Errorf("add controller %s: %w", e.name, err)
		}
		left.Set(e.name, false)
	}
	return o.LeftOut.waiting().AddTo(ctx, mgr, later)
}

func (e entry) add(ctx context.Context, mgr ctrl.Manager, o *Options) error {
	if o.held != nil && createsPods(e.name) {
		mgr = heldManager{mgr, o.held}
	}
	r, err := e.make(mgr.GetClient())
	if err != nil {
		return err
	}
	return e.setUp(ctx, mgr, r, o)
}

// chosen are the entries of a choice, in the order of the list. What is left out stays out, wherever in the choice.
func chosen(all []entry, choice []string) ([]entry, error) {
	known := names(all)
	for _, c := range choice {
		name := c
		if len(c) > 1 && c[0] == '-' {
			name = c[1:]
		}
		if c != "*" && !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no controller %q, only %q", name, known)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(e entry) bool {
		all := (len(choice) == 0 || slices.Contains(choice, "*")) && e.name != nameNative
		in := all || slices.Contains(choice, e.name)
		return !in || slices.Contains(choice, "-"+e.name)
	}), nil
}

func names(all []entry) []string {
	n := make([]string, 0, len(all))
	for _, e := range all {
		n = append(n, e.name)
	}
	return n
}

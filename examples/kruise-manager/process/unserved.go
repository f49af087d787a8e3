package process

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
)

// unserved warns of jobs that no controller reconciles because a gate is off. The chart of the reference sets
// ImagePullJobGate, which is off by default: without the flag, a cluster that was taken over pulls nothing, and nothing
// else shows it. It runs once, on the leader.
type unserved struct {
	reader   runtimeclient.Reader
	recorder record.EventRecorder
	options  options.Options
}

// Start implements manager.Runnable. No answer of the API server ends the process.
func (u *unserved) Start(ctx context.Context) error {
	for _, kind := range []string{"ImageListPullJob", "ImagePullJob"} {
		controller := strings.ToLower(kind)
		off := slices.DeleteFunc(slices.Clone(needs()[controller]), u.options.Gates.On)
		if len(off) > 0 && u.asked(controller) {
			u.look(ctx, kind, off)
		}
	}
	return nil
}

// asked reports whether the command line would run a controller.
func (u *unserved) asked(controller string) bool {
	names := u.options.Controllers
	in := len(names) == 0 || slices.Contains(names, "*") || slices.Contains(names, controller)
	return in && !slices.Contains(names, "-"+controller)
}

// look warns where an object of a kind exists.
func (u *unserved) look(ctx context.Context, kind string, off []gates.Gate) {
	job := first(ctx, u.reader, v1beta1.GroupVersion.WithKind(kind), u.options.Cache.Namespace)
	if job == nil {
		return
	}
	log.FromContext(ctx).Info("Jobs are not reconciled: a feature gate is off",
		"kind", kind, "featureGates", off, "namespace", job.Namespace, "name", job.Name)
	u.recorder.Event(job, corev1.EventTypeWarning, "FeatureGateOff",
		fmt.Sprintf("No %s is reconciled: set --feature-gates=%s=true for the manager and the daemon", kind, off[0]))
}

// first returns an object of a kind; nil without one, and without an answer.
func first(
	ctx context.Context, reader runtimeclient.Reader, kind schema.GroupVersionKind, namespace string,
) *metav1.PartialObjectMetadata {
	one := &metav1.PartialObjectMetadataList{}
	one.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, one, runtimeclient.Limit(1), runtimeclient.InNamespace(namespace))
	if err != nil {
		log.FromContext(ctx).V(1).Info("Skipped looking for objects without pods", "kind", kind.Kind, "reason", err.Error())
	}
	if err != nil || len(one.Items) == 0 {
		return nil
	}
	one.Items[0].SetGroupVersionKind(kind)
	return &one.Items[0]
}

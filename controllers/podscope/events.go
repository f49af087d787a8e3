package podscope

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// catchUp is the time for the cache to show what another writer has written.
	catchUp = 200 * time.Millisecond

	reasonUndone = "PodScopeUndone"
	reasonNote   = "PodScopeNote"
)

// report emits the notes when they change.
func (r *Reconciler) report(
	ctx context.Context, about *admissionregistrationv1.MutatingWebhookConfiguration, notes []note.Note,
) {
	r.metrics.count(notes)
	text := fmt.Sprint(notes)
	if text == r.reported {
		return
	}
	r.reported = text
	for _, n := range notes {
		log.FromContext(ctx).Info("Found entries that differ from what the sets select",
			"reason", n.Code, "object", n.Object, "note", n.Text)
		r.event(about, reasonNote, fmt.Sprintf("%s: %s", n.Object, n.Text))
	}
}

// announce emits what a write has done.
func (r *Reconciler) announce(
	ctx context.Context, about *admissionregistrationv1.MutatingWebhookConfiguration, notes []note.Note,
) {
	for _, n := range notes {
		log.FromContext(ctx).Info("Repaired entries", "reason", n.Code, "object", n.Object, "note", n.Text)
		r.metrics.repaired()
		r.event(about, reasonUndone, n.Text)
	}
}

// event emits an event about the configuration of pods; nil where it does not exist.
func (r *Reconciler) event(about *admissionregistrationv1.MutatingWebhookConfiguration, reason, text string) {
	if about == nil {
		about = &admissionregistrationv1.MutatingWebhookConfiguration{}
		about.Name = r.options.Configuration
	}
	var object runtime.Object = about
	if r.form.disruptions {
		object = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: about.ObjectMeta}
	}
	r.options.Recorder.Event(object, corev1.EventTypeWarning, reason, failure.BriefText(text))
}

// reasonBare is the reason for which the reconciler of SidecarSets reports pods that lack containers, too.
const reasonBare = "ContainersMissing"

// reportBare emits an event for each set that pods of the window lack. It reads all pods of the cache, once after
// entries were missing, and again after an error.
func (r *Reconciler) reportBare(ctx context.Context, o entries.Observation) error {
	w := r.bare
	if w.Until.IsZero() {
		return nil
	}
	if len(o.Sets) == 0 {
		r.bare = scope.Window{}
		return nil
	}
	var pods corev1.PodList
	if err := r.objects.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	lacking, total := map[string][]string{}, 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !w.Contains(pod) {
			continue
		}
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := r.objects.Get(ctx,
			types.NamespacedName{Name: pod.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read namespace %s: %w", pod.Namespace, err)
		}
		sets := scope.Bare(pod, &corev1.Namespace{ObjectMeta: namespace.ObjectMeta}, o.Sets, r.options.Namespace)
		for _, set := range sets {
			lacking[set] = append(lacking[set], pod.Namespace+"/"+pod.Name)
		}
		if len(sets) > 0 {
			total++
		}
	}
	r.bare = scope.Window{}
	r.metrics.found(total)
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		all := lacking[name]
		slices.Sort(all)
		text := fmt.Sprintf("%d pods were created without this set while the entries of the pod webhook were missing, "+
			"the first is %s; recreate the pods", len(all), all[0])
		log.FromContext(ctx).Info("Found pods without their sidecarset",
			"sidecarset", name, "pods", all[:min(len(all), 20)], "count", len(all))
		at := slices.IndexFunc(o.Sets, func(set *unstructured.Unstructured) bool { return set.GetName() == name })
		about := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: o.Sets[at].GetUID()}}
		r.options.Recorder.Event(about, corev1.EventTypeWarning, reasonBare, text)
	}
	return nil
}

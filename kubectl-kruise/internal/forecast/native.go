package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controller "github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload/native"
)

// nativeStatefulSets are StatefulSets of Kubernetes that ask for updates in place, next to their built-in controller.
func nativeStatefulSets() *kind {
	return &kind{
		name:   "StatefulSet",
		native: true,
		place:  func(pod *corev1.Pod) string { return pod.Name },
		facts: func(o client.Object) facts {
			set, ok := o.(*appsv1.StatefulSet)
			if !ok {
				return facts{}
			}
			f := facts{
				template: &set.Spec.Template, pods: set.Spec.Selector, minReady: set.Spec.MinReadySeconds,
				current: set.Status.UpdateRevision, update: set.Status.UpdateRevision,
			}
			f.rollout(set, native.KindStatefulSet, ptr.Deref(set.Spec.Replicas, 1), scale.RoundDown)
			return f
		},
		reconciler: newNative,
	}
}

// nativeDaemonSets are DaemonSets of Kubernetes that ask for updates in place, next to their built-in controller.
func nativeDaemonSets() *kind {
	return &kind{
		name:   "DaemonSet",
		native: true,
		place:  func(pod *corev1.Pod) string { return pod.Spec.NodeName },
		facts: func(o client.Object) facts {
			set, ok := o.(*appsv1.DaemonSet)
			if !ok {
				return facts{}
			}
			f := facts{
				template: &set.Spec.Template, pods: set.Spec.Selector, minReady: set.Spec.MinReadySeconds, nodes: true,
				update: set.Annotations[simulatedRevisionKey],
			}
			f.rollout(set, native.KindDaemonSet, set.Status.DesiredNumberScheduled, scale.RoundUp)
			return f
		},
		reconciler: newNative,
	}
}

// rollout reads what the annotation of a set asks for.
func (f *facts) rollout(set client.Object, kind native.Kind, replicas int32, rounding scale.Rounding) {
	path := field.NewPath("metadata", "annotations").Key(native.RolloutKey)
	text, _ := native.Request(set, nil)
	r, faults := native.Parse(text, kind, path)
	if len(faults) > 0 {
		r = native.Rollout{Paused: true} // which the reconciler reports
	}
	if d, ok := set.(*appsv1.Deployment); ok && r.MaxUnavailable == nil {
		r.MaxUnavailable = ptr.To(intstr.FromInt32(rollingBounds(d).MaxUnavailable))
	}
	f.recreates = r.PodUpdatePolicy == native.ReCreate
	f.grace, f.minReady = r.GracePeriodSeconds, ptr.Deref(r.MinReadySeconds, f.minReady)
	f.bounds = Bounds{
		Replicas: replicas, Partition: min(max(r.Partition, 0), replicas),
		MaxUnavailable: max(amount(r.MaxUnavailable, "1", replicas, rounding), 1),
	}
	f.bounds.MinAvailable = max(replicas-f.bounds.MaxUnavailable, 0)
	switch {
	case r.Paused:
		f.kept, f.keptPods = note.Note{Code: scale.NotePaused, Text: "updates are paused"}, replicas
	case f.bounds.Partition > 0:
		f.kept = note.Note{Code: scale.NotePartition, Text: "the partition keeps the pod"}
		f.keptPods = f.bounds.Partition
	}
}

// reported returns why a set is blocked, from its status annotation: the reconciler has no other place for notes.
func reported(set client.Object) []note.Note {
	var p controller.Progress
	if err := json.Unmarshal([]byte(set.GetAnnotations()[controller.StatusKey]), &p); err != nil ||
		p.State != controller.StateBlocked && p.State != controller.StateInvalid {
		return nil
	}
	code, text, _ := strings.Cut(p.Note, ": ")
	code, object, _ := strings.Cut(code, " ")
	return []note.Note{{Level: note.Blocked, Code: code, Object: object, Text: text}}
}

// checkNative returns an error for a set that does not ask for updates in place.
func checkNative(o client.Object) error {
	if _, asks := native.Request(o, nil); !asks {
		return &UnsupportedError{
			Kind: fmt.Sprintf("%T", o)[4:] + " of apps/v1",
			Why:  "its built-in controller recreates the pods; with the annotation " + native.RolloutKey + " a forecast is made",
		}
	}
	return nil
}

func newNative(_ context.Context, s *simulation) (reconcile.Reconciler, error) {
	r, err := controller.New(s.server, controller.Options{
		Live: s.server, Recorder: s.server, Now: s.now, Installed: installed(s.options), Ask: s.guard.ask,
	})
	if err != nil {
		return nil, err
	}
	switch s.object.(type) {
	case *appsv1.Deployment:
		return rolling{&builtIn{simulation: s, engine: r.Deployments()}}, nil
	case *appsv1.DaemonSet:
		return &builtIn{simulation: s, engine: r.DaemonSets()}, nil
	}
	return &builtIn{simulation: s, engine: r.StatefulSets()}, nil
}

package forecast

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// Of returns what a change of a workload does. An *UnsupportedError is for a kind that no forecast is made for.
func Of(ctx context.Context, in Input) (*Forecast, error) {
	if in.Live == nil || in.Wanted == nil {
		return nil, errors.New("forecast: the live and the wanted workload are required")
	}
	k, err := kindOf(in.Live)
	if err != nil {
		return nil, err
	}
	s, err := newSimulation(ctx, k, in)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("forecast %s %s: %w", k.name, s.name, err)
	}
	f, err := s.forecast(ctx)
	if err == nil && k.subsets != nil {
		f.Subsets = k.subsets(in.Live, s.object)
	}
	return f, err
}

// newSimulation loads a snapshot, and changes the workload in it.
func newSimulation(ctx context.Context, k *kind, in Input) (*simulation, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	s := &simulation{
		kind: k, options: in.Options, name: client.ObjectKeyFromObject(in.Live), wanted: k.facts(in.Wanted),
		begin: in.Now.Truncate(time.Second),
	}
	s.clock, s.changed = s.begin, s.begin
	s.server = apiserver.New(scheme, s.now)
	s.record = &record{
		simulation: s, owner: in.Live.GetUID(), owners: owners{in.Live.GetUID(): true},
		pods: map[types.UID]*history{}, names: map[string]*history{},
	}
	if err := index(ctx, s.server); err != nil {
		return nil, err
	}
	if k.load != nil {
		if in.Objects, err = k.load(in.Live, in.Objects); err != nil {
			return nil, err
		}
	}
	for _, o := range in.Objects {
		if !isUsed(o) {
			continue
		}
		s.record.own(o)
		if err := s.server.Put(o); err != nil {
			return nil, fmt.Errorf("load %T %s: %w", o, client.ObjectKeyFromObject(o), err)
		}
	}
	pods, err := s.pods(ctx)
	if err != nil {
		return nil, err
	}
	s.prepare(in, pods)
	wanted, err := applied(in)
	if err == nil && k.prepare != nil {
		err = k.prepare(in.Live, wanted)
	}
	if err != nil {
		return nil, err
	}
	if err := s.server.Put(wanted); err != nil {
		return nil, fmt.Errorf("load %s %s: %w", k.name, s.name, err)
	}
	s.object = wanted
	s.reconciler, err = k.reconciler(ctx, s)
	return s, err
}

// isUsed reports whether a reconciler reads objects of a type.
func isUsed(o client.Object) bool {
	switch o.(type) {
	case *corev1.Pod, *corev1.Node, *corev1.Namespace, *corev1.PersistentVolumeClaim, *appsv1.ControllerRevision,
		*v1beta1.SidecarSet, *v1beta1.CloneSet, *v1beta1.StatefulSet, *appsv1.StatefulSet, *appsv1.DaemonSet,
		*appsv1.Deployment, *appsv1.ReplicaSet:
		return true
	}
	return false
}

// prepare sets up what acts next to the reconciler.
func (s *simulation) prepare(in Input, pods []*corev1.Pod) {
	for _, pod := range pods {
		h := s.record.of(pod)
		h.first, h.last, s.record.names[h.name] = pod, pod, h
	}
	live := s.kind.facts(in.Live)
	s.live, s.record.update = live, live.update
	s.server.OnChange(s.record.change)
	policy := workloads.Policy(in.Options.Installed)
	if s.kind.native {
		policy = installed(in.Options).Policy()
	}
	s.nodes = &nodes{
		now: s.now, pace: paceOf(in.Options.Pace, pods, s.wanted.template), policy: policy,
		names: nodesOf(in.Objects, pods), opens: map[corev1.PodConditionType]bool{}, owns: s.record.owns,
		pods: map[types.UID]*sandbox{}, broken: brokenImages(pods),
	}
	for _, pod := range pods {
		_, published := pod.Annotations[kruise.RuntimeContainerMetaKey]
		s.nodes.daemon = s.nodes.daemon || published
		for _, gate := range pod.Spec.ReadinessGates {
			ours := gate.ConditionType == kruise.InPlaceUpdateReady || gate.ConditionType == kruise.KruisePodReadyConditionType
			if !ours && isTrue(pod, gate.ConditionType) {
				s.nodes.opens[gate.ConditionType] = true
			}
		}
		s.nodes.load(pod)
	}
	s.hooks = &hooks{Lifecycle: s.wanted.hooks, held: in.Options.HoldHooks, record: s.record}
	s.guard = newGuard(s, in.Objects, pods, s.wanted.bounds.Replicas-live.bounds.Replicas)
}

// nodesOf are the names of nodes on which new pods may run, in order.
func nodesOf(objects []client.Object, pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			names = append(names, pod.Spec.NodeName)
		}
	}
	for _, o := range objects {
		if node, ok := o.(*corev1.Node); ok && len(pods) == 0 {
			names = append(names, node.Name)
		}
	}
	if slices.Sort(names); len(names) == 0 {
		return []string{"node"}
	}
	return slices.Compact(names)
}

// applied is the workload after the change, with the metadata and the status of the live one.
func applied(in Input) (client.Object, error) {
	wanted, ok := in.Wanted.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("forecast: the copy of %T is no object", in.Wanted)
	}
	wanted.SetNamespace(in.Live.GetNamespace())
	wanted.SetName(in.Live.GetName())
	wanted.SetUID(in.Live.GetUID())
	wanted.SetCreationTimestamp(in.Live.GetCreationTimestamp())
	wanted.SetDeletionTimestamp(in.Live.GetDeletionTimestamp())
	wanted.SetFinalizers(in.Live.GetFinalizers())
	wanted.SetOwnerReferences(in.Live.GetOwnerReferences())
	wanted.SetGeneration(in.Live.GetGeneration())
	live := in.Live.DeepCopyObject()
	fieldOf(wanted, "Status").Set(fieldOf(live, "Status"))
	if !apiequality.Semantic.DeepEqual(fieldOf(live, "Spec").Interface(), fieldOf(wanted, "Spec").Interface()) {
		wanted.SetGeneration(in.Live.GetGeneration() + 1)
	}
	return wanted, nil
}

// fieldOf returns a field of an object. All workloads have a spec and a status.
func fieldOf(o any, name string) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName(name) }

package forecast

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/sidecar"
)

// sidecarSets are of the pods that were created with their containers, in all namespaces.
func sidecarSets() *kind {
	return &kind{
		name: "SidecarSet",
		owns: func(set types.NamespacedName, pod *corev1.Pod) bool {
			return slices.Contains(rollout.Sets(pod), set.Name)
		},
		revision: func(set types.NamespacedName, pod *corev1.Pod) string {
			injected, _ := sidecar.ReadInjected(pod.Annotations[kruise.SidecarSetHashKey]) // else it has none
			return injected[set.Name].Hash
		},
		facts: func(o client.Object) facts {
			set, ok := o.(*v1beta1.SidecarSet)
			if !ok {
				return facts{}
			}
			return sidecarSetFacts(set)
		},
		prepare: hashSidecarSet,
		reconciler: func(ctx context.Context, s *simulation) (reconcile.Reconciler, error) {
			err := s.server.IndexField(ctx, &corev1.Pod{}, "kruisekit.dev/sidecarset", func(o client.Object) []string {
				pod, ok := o.(*corev1.Pod)
				if !ok {
					return nil
				}
				return rollout.Sets(pod)
			})
			if err != nil {
				return nil, fmt.Errorf("index pods: %w", err)
			}
			return sidecarset.New(s.server, sidecarset.Options{
				Live: s.server, Recorder: s.server, Now: s.now,
				Explain: func(ctx context.Context, set string, notes []note.Note) {
					if set == s.name.Name {
						s.explain(ctx, s.name, notes)
					}
				},
			})
		},
	}
}

func sidecarSetFacts(set *v1beta1.SidecarSet) facts {
	u := &set.Spec.UpdateStrategy
	f := facts{
		template: &corev1.PodTemplateSpec{}, pods: set.Spec.Selector, update: set.Annotations[kruise.SidecarSetHashKey],
	}
	for i := range set.Spec.InitContainers {
		f.containers = append(f.containers, &set.Spec.InitContainers[i].Container)
	}
	for i := range set.Spec.Containers {
		f.containers = append(f.containers, &set.Spec.Containers[i].Container)
	}
	matched := set.Status.MatchedPods
	b := Bounds{Replicas: matched, MaxUnavailable: amount(u.MaxUnavailable, "1", matched, scale.RoundUp)}
	b.Partition, _ = scale.Partition(u.Partition, matched)
	b.MinAvailable = max(matched-b.MaxUnavailable, 0)
	f.bounds = b
	if u.Selector != nil {
		if selector, err := metav1.LabelSelectorAsSelector(u.Selector); err == nil {
			f.podSelector = selector
		}
	}
	return f
}

// hashSidecarSet writes the hashes of a changed set, as admission does.
func hashSidecarSet(live, wanted client.Object) error {
	was, isSet := live.(*v1beta1.SidecarSet)
	set, ok := wanted.(*v1beta1.SidecarSet)
	if !ok || !isSet {
		return nil
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	hash, bare := was.Annotations[kruise.SidecarSetHashKey], was.Annotations[kruise.SidecarSetHashWithoutImageKey]
	if hash == "" || !apiequality.Semantic.DeepEqual(was.Spec, set.Spec) {
		var err error
		if hash, err = sidecar.Hash(set); err != nil {
			return fmt.Errorf("hash SidecarSet %s: %w", set.Name, err)
		}
		if bare, err = sidecar.HashWithoutImage(set); err != nil {
			return fmt.Errorf("hash SidecarSet %s: %w", set.Name, err)
		}
	}
	set.Annotations[kruise.SidecarSetHashKey] = hash
	set.Annotations[kruise.SidecarSetHashWithoutImageKey] = bare
	return nil
}

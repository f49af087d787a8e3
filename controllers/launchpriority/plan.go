package launchpriority

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/write"
)

// writes returns the writes of a plan, in their order. An error leaves the rest to the next pass.
func (s *snapshot) writes(p launch.Plan) (all []*write.Write, err error) {
	if p.Remove != "" {
		former := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.barrier.Namespace, Name: s.barrier.Name, UID: p.Remove,
		}}
		all = append(all, &write.Write{Verb: write.Delete, Object: former})
	}
	if p.Create != nil {
		all = append(all, &write.Write{Verb: write.Create, Object: p.Create})
	}
	if len(p.Add) > 0 {
		patch, err := launch.AddPatch(s.barrier, p.Add)
		if err != nil {
			return nil, err
		}
		all = append(all, &write.Write{
			Verb: write.Patch, Object: s.barrier, Type: launch.PatchType, Body: write.Bytes(patch),
		})
	}
	if p.Complete {
		patch, err := launch.CompletePatch(s.pod, s.policy)
		if err != nil {
			return nil, err
		}
		pod := stored.MetadataOf(podKind(), types.NamespacedName{Namespace: s.pod.Namespace, Name: s.pod.Name})
		pod.UID = s.pod.UID
		all = append(all, &write.Write{Verb: write.Patch, Object: pod, Type: launch.PatchType, Body: write.Bytes(patch)})
	}
	return all, nil
}

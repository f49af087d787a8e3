package claims

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
)

// Name returns the name of a claim.
func Name(template, workload, pod string) string { return template + "-" + workload + "-" + pod }

// Identity is what a claim has besides its template.
type Identity struct {
	Namespace string
	// Workload and Pod are the parts of the name after the template.
	Workload, Pod string
	// Labels come on top of those of the template.
	Labels map[string]string
	// Owners of the claim; nil where the claim outlasts its workload.
	Owners []metav1.OwnerReference
}

// New returns the claim of a template.
func New(template *corev1.PersistentVolumeClaim, i Identity) *corev1.PersistentVolumeClaim {
	copied := template.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{Spec: copied.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: i.Namespace, Name: Name(template.Name, i.Workload, i.Pod),
		Labels: copied.Labels, Annotations: copied.Annotations, Finalizers: copied.Finalizers, OwnerReferences: i.Owners,
	}}
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, i.Labels)
	return claim
}

// Mount adds the volumes of the claims to a pod, in the order of the templates. A volume of the same name makes room.
func Mount(pod *corev1.PodSpec, templates []corev1.PersistentVolumeClaim, workload, id string) {
	for i := range templates {
		volume := templates[i].Name
		pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: Name(volume, workload, id)},
		}})
	}
}

// Mounts reports whether a pod has the volume of the claim of each template. No running pod can get one that it lacks.
func Mounts(pod *corev1.PodSpec, templates []corev1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(templates, func(t corev1.PersistentVolumeClaim) bool {
		return !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.Name == t.Name && v.PersistentVolumeClaim != nil
		})
	})
}

// claimTemplate is a claim as the type library of the reference prints it: with the zero values that later ones leave
// out.
type claimTemplate struct {
	Metadata struct {
		Name              string       `json:"name"`
		CreationTimestamp *metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec   corev1.PersistentVolumeClaimSpec `json:"spec"`
	Status struct{}                         `json:"status"`
}

// Hash returns the hash of claim templates as the reference writes it; empty without any.
func Hash(templates []corev1.PersistentVolumeClaim) (string, error) {
	if len(templates) == 0 {
		return "", nil
	}
	reduced := make([]claimTemplate, len(templates))
	for i := range templates {
		reduced[i].Metadata.Name, reduced[i].Spec = templates[i].Name, templates[i].Spec
	}
	slices.SortStableFunc(reduced, func(a, b claimTemplate) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	n, err := revision.Fingerprint(reduced)
	return strconv.FormatUint(uint64(n), 10), err
}

// Pool are the claims of a workload with interchangeable pods. A pod and its claims have the same instance id.
type Pool struct {
	// Workload controls the claims.
	Workload metav1.Object
	// Label is the key of the instance id.
	Label string
	// Templates of the claims of one pod.
	Templates []corev1.PersistentVolumeClaim
	// Claims that are not terminating, by name.
	Claims []*corev1.PersistentVolumeClaim
}

// Has reports whether a claim serves an id.
func (p Pool) Has(name, id string) bool {
	i, found := slices.BinarySearchFunc(p.Claims, name, func(c *corev1.PersistentVolumeClaim, name string) int {
		return cmp.Compare(c.Name, name)
	})
	return found && p.Claims[i].Labels[p.Label] == id
}

// Of returns the claims of an id. The empty id has none: else every claim without the label would be taken for its own.
func (p Pool) Of(id string) []*corev1.PersistentVolumeClaim {
	var all []*corev1.PersistentVolumeClaim
	for _, claim := range p.Claims {
		if id != "" && claim.Labels[p.Label] == id {
			all = append(all, claim)
		}
	}
	return all
}

// Idle returns the ids of claims that no pod uses.
func (p Pool) Idle(pods []*corev1.Pod) []string {
	if len(p.Claims) == 0 {
		return nil
	}
	used := make(map[string]bool, len(pods))
	for _, pod := range pods {
		used[pod.Labels[p.Label]] = true
	}
	var idle []string
	for _, claim := range p.Claims {
		if id := claim.Labels[p.Label]; id != "" && !used[id] {
			idle = append(idle, id)
		}
	}
	slices.Sort(idle)
	return slices.Compact(idle)
}

// Taken returns which of some ids lack a claim whose name another claim has, and why that claim does not serve the id.
// The pod would be Pending for ever. The reader is a cache: an index by owner does not show such claims.
func (p Pool) Taken(ctx context.Context, from client.Reader, ids []string) (map[string]string, error) {
	taken := map[string]string{}
	for _, id := range ids {
		for i := range p.Templates {
			name := types.NamespacedName{
				Namespace: p.Workload.GetNamespace(), Name: Name(p.Templates[i].Name, p.Workload.GetName(), id),
			}
			if taken[id] != "" || p.Has(name.Name, id) {
				continue
			}
			claim, err := stored.Find[corev1.PersistentVolumeClaim](ctx, from, name)
			if err != nil {
				return nil, err
			}
			if claim != nil {
				taken[id] = fmt.Sprintf("claim %s %s", name.Name, p.unfit(claim, id))
			}
		}
	}
	return taken, nil
}

// unfit returns why a claim does not serve an id.
func (p Pool) unfit(claim *corev1.PersistentVolumeClaim, id string) string {
	switch {
	case !owned.Controls(p.Workload, claim):
		return "is not controlled by " + p.Workload.GetName()
	case claim.DeletionTimestamp == nil && claim.Labels[p.Label] != id:
		return "has another instance id"
	}
	return "is terminating"
}

// Demand is what Choose chooses ids for.
type Demand struct {
	// Now is how many pods to create now, of Missing ones.
	Now, Missing int
	// Used are the ids that pods have. Leaving are those of pods that are about to be gone, whose claims are free then.
	Used, Leaving map[string]bool
	// Taken are the ids that cannot be used now: see Pool.Taken.
	Taken map[string]string
	// Pending are the ids of earlier attempts, which are chosen before fresh ones.
	Pending []string
	// New returns a fresh id.
	New func() string
}

// Choose returns the ids of new pods, sorted: those of claims that no pod has, then pending ones, then fresh
// ones. Pods wait for ids whose claims are about to be free, and for blocked ids, those that are taken. They keep no
// other pod from being created.
func (p Pool) Choose(d Demand) (ids, blocked []string) {
	chosen, waiting := map[string]bool{}, map[string]bool{}
	choose := func(id string) {
		if !d.Used[id] && !chosen[id] {
			chosen[id] = true
			ids = append(ids, id)
		}
	}
	for _, claim := range p.Claims {
		switch id := claim.Labels[p.Label]; {
		case id == "" || waiting[id]:
		case d.Leaving[id]:
			waiting[id] = true
		case !d.Used[id] && d.Taken[id] != "":
			waiting[id] = true
			blocked = append(blocked, id)
		case len(ids) < d.Now:
			choose(id)
		}
	}
	most := min(d.Now, d.Missing-len(waiting))
	for _, id := range d.Pending {
		if len(ids) < most && d.Taken[id] == "" {
			choose(id)
		}
	}
	for len(ids) < most {
		choose(d.New())
	}
	slices.Sort(ids)
	if len(ids) >= d.Missing {
		blocked = nil
	}
	return ids, blocked
}

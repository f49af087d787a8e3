package claims

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/revision"
)

// Name returns the name of a claim.
func Name(template, workload, pod string) string { return template + "-" + workload + "-" + pod }

// Identity is what a claim has beside its template.
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

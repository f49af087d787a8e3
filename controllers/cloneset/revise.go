package cloneset

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/revision"
)

// newestRevision plans what makes the template of the set the newest revision.
func (s *snapshot) newestRevision(r revision.Resolution, data []byte, hash string) (history.Change, error) {
	return history.Plan(history.Wanted{
		Resolution: r, Namespace: s.set.Namespace, Owner: s.controllerRef(), Data: data,
		Labels: maps.Clone(s.set.Spec.Template.Labels), Annotations: maps.Clone(s.set.Annotations),
		RaisedAnnotations: map[string]string{pub.CloneSetVolumeClaimTemplateHashKey: hash},
	})
}

// claimTemplate is a claim as the type library of the reference prints it: with the zero values that later ones leave out.
type claimTemplate struct {
	Metadata struct {
		Name              string       `json:"name"`
		CreationTimestamp *metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec   corev1.PersistentVolumeClaimSpec `json:"spec"`
	Status struct{}                         `json:"status"`
}

// claimsHash is the hash of claim templates as the reference writes it; empty without any.
func claimsHash(templates []corev1.PersistentVolumeClaim) (string, error) {
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

package owned

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/binding"
)

// orphanField is the name of the index of orphans that the workloads of a kind can adopt. Kinds have different names
// for their pods.
func orphanField(kind string) string { return "kruisekit.dev/orphan-of-" + strings.ToLower(kind) }

// Adopter is a kind of workloads that adopts orphans.
type Adopter struct {
	Kind string
	// Workload returns the name of the workload that an object with a name can belong to.
	Workload func(name string) (string, bool)
}

// IndexOrphans lets Orphans select objects that no owner controls.
func IndexOrphans(ctx context.Context, indexer client.FieldIndexer, object client.Object, a Adopter) error {
	return binding.SharedIndex(indexer.IndexField(ctx, object, orphanField(a.Kind), func(o client.Object) []string {
		return OrphanKeys(o, a.Workload)
	}))
}

// OrphanKeys returns the keys of an object in the index of orphans.
func OrphanKeys(o metav1.Object, workload func(name string) (string, bool)) []string {
	if metav1.GetControllerOfNoCopy(o) != nil {
		return nil
	}
	if name, ok := workload(o.GetName()); ok {
		return []string{name}
	}
	return nil
}

// Orphans selects the orphans in a namespace whose names are those of the objects of a workload of a kind.
func Orphans(namespace, kind, workload string) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{orphanField(kind): workload}}
}

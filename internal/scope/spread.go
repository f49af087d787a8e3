package scope

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// mostSpreads and mostSpreadLetters are what one namespace may take up in the entries, as for budgets.
const (
	mostSpreads       = 32
	mostSpreadLetters = 4 << 10
)

// SpreadKind is that of WorkloadSpreads.
func SpreadKind() schema.GroupVersionKind {
	return appsv1beta1.GroupVersion.WithKind("WorkloadSpread")
}

// Spreads is the source of the step that gives new pods their subsets. Pods are created without a subset while no
// replica answers, as they are where no subset has a place.
func Spreads() Source {
	return Source{Step: "spread", Kind: SpreadKind(), Contribute: func(objects []*unstructured.Unstructured) Contribution {
		g := spreadOf(objects)
		c := g.contribution("object")
		if others := g.renamed(); len(others.Of) > 0 {
			c.Lists = append(c.Lists, others)
		}
		for i := range c.Lists {
			c.Lists[i].Ignore = true
		}
		return c
	}}
}

// spreadOf returns the pods that WorkloadSpreads concern, by their targets.
func spreadOf(objects []*unstructured.Unstructured) guarded {
	by := map[string][]*appsv1beta1.WorkloadSpread{}
	for _, raw := range objects {
		ws, _, err := stored.Decode[appsv1beta1.WorkloadSpread](raw)
		if err == nil && ws.Spec.TargetReference != nil && ws.DeletionTimestamp == nil {
			by[ws.Namespace] = append(by[ws.Namespace], ws)
		}
	}
	var g guarded
	for _, namespace := range slices.Sorted(maps.Keys(by)) {
		g.spread(namespace, by[namespace])
	}
	return g
}

// spread adds the WorkloadSpreads of a namespace. All pods of the namespace are sent where there are too many, or where
// the target is of another kind, which may be above the controller of the pods.
func (g *guarded) spread(namespace string, all []*appsv1beta1.WorkloadSpread) {
	letters, whole := 0, len(all) > mostSpreads
	for _, ws := range all {
		t := ws.Spec.TargetReference
		letters += len(t.Kind) + len(t.Name)
		whole = whole || !slices.ContainsFunc(subset.Targets(), func(k schema.GroupKind) bool {
			return k.Kind == t.Kind
		})
	}
	if whole || letters > mostSpreadLetters {
		g.whole = append(g.whole, namespace)
		return
	}
	for _, ws := range all {
		t := ws.Spec.TargetReference
		if t.Kind == "Deployment" {
			g.deployments = append(g.deployments, namespace+"/"+t.Name)
			continue
		}
		g.owners = append(g.owners, namespace+"/"+t.Kind+"/"+t.Name)
	}
}

// renamed are the pods of ReplicaSets that a Deployment has not named, in the namespaces where the target is a
// Deployment.
func (g *guarded) renamed() List {
	l := List{
		Before: "('" + templateHash +
			"' in l && has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, " +
			"has(o.controller) && o.controller && o.kind == 'ReplicaSet' && !o.name.endsWith('-' + l['" + templateHash +
			"'])) && ",
		Value: "request.namespace", After: ")",
	}
	for _, name := range g.deployments {
		l.Of = append(l.Of, NamespaceOf(name))
	}
	l.Of = sorted(l.Of)
	return l
}

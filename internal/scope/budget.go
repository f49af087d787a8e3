package scope

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/kruise"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

// What one namespace may take up in the entries. A namespace whose budgets take more has all of its pods sent, so that
// its user cannot widen the entries of others.
const (
	mostBudgets       = 32
	mostBudgetLetters = 4 << 10
)

// BudgetKind is that of PodUnavailableBudgets.
func BudgetKind() schema.GroupVersionKind {
	return policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")
}

// Budgets is the source of the step that stamps new pods with their budget. Pods are created without the stamp while no
// replica answers.
func Budgets() Source {
	return Source{Step: "budget", Kind: BudgetKind(), Contribute: func(objects []*unstructured.Unstructured) Contribution {
		g := guardedOf(objects)
		c := g.contribution("object")
		for i := range c.Selections {
			c.Selections[i].Ignore = true
		}
		for i := range c.Lists {
			c.Lists[i].Ignore = true
		}
		return c
	}}
}

// guarded is the pods that budgets guard.
type guarded struct {
	// selections of budgets with selectors.
	selections []Selection
	// owners are namespace/kind/name of targets, and deployments namespace/name of those whose pods belong to ReplicaSets.
	owners, deployments []string
	// stamps are namespace/name of budgets with targets.
	stamps []string
	// whole are the namespaces whose pods are all sent.
	whole []string
}

// guardedOf returns the pods that budgets guard. A budget that cannot be read guards none, as in package pub.
func guardedOf(objects []*unstructured.Unstructured) guarded {
	by := map[string][]*policyv1beta1.PodUnavailableBudget{}
	for _, raw := range objects {
		object, invalid, err := stored.Decode[policyv1beta1.PodUnavailableBudget](raw)
		if err != nil || invalid != nil {
			continue
		}
		if b, _ := pub.Read(object); b.Selector != nil || b.Target != nil {
			by[object.Namespace] = append(by[object.Namespace], object)
		}
	}
	var g guarded
	for _, namespace := range slices.Sorted(maps.Keys(by)) {
		g.add(namespace, by[namespace])
	}
	return g
}

// add adds the budgets of a namespace.
func (g *guarded) add(namespace string, all []*policyv1beta1.PodUnavailableBudget) {
	letters := 0
	for _, b := range all {
		letters += b.Spec.Selector.Size()
		if t := b.Spec.TargetReference; t != nil {
			letters += len(t.Kind) + 2*len(b.Name) + len(t.Name)
		}
	}
	if len(all) > mostBudgets || letters > mostBudgetLetters {
		g.whole = append(g.whole, namespace)
		return
	}
	for _, object := range all {
		b, _ := pub.Read(object)
		if b.Target == nil {
			g.selections = append(g.selections, Selection{
				Object: namespace + "/" + b.Name, In: namespace, Pod: object.Spec.Selector,
				Namespace: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			})
			continue
		}
		g.stamps = append(g.stamps, namespace+"/"+b.Name)
		if b.Target.Kind == "Deployment" {
			g.deployments = append(g.deployments, namespace+"/"+b.Target.Name)
		}
		g.owners = append(g.owners, namespace+"/"+b.Target.Kind+"/"+b.Target.Name)
	}
}

// contribution returns the pods by what names them in a request: object, or oldObject.
func (g *guarded) contribution(pod string) Contribution {
	c := Contribution{Selections: g.selections}
	controlled := controlledIn(pod)
	hash := "l['" + templateHash + "']"
	for _, l := range []List{
		{Value: "request.namespace", Of: g.whole},
		{Before: controlled, Value: byOwner, After: "))", Of: g.owners},
		{
			// A Deployment names its ReplicaSets after itself and the hash. The pods of others are found by their stamp.
			Before: "('" + templateHash + "' in l && " + controlled + "o.kind == 'ReplicaSet' && o.name.endsWith('-' + " + hash +
				") && ",
			Value: "(request.namespace + '/' + o.name.substring(0, size(o.name) - size(" + hash + ") - 1))", After: ")))",
			Of: g.deployments,
		},
	} {
		if l.Of = sorted(l.Of); len(l.Of) > 0 {
			c.Lists = append(c.Lists, l)
		}
	}
	return c
}

const templateHash = "pod-template-hash"

// controlledIn begins an expression about the controller o of a pod, and byOwner identifies the controller.
func controlledIn(pod string) string {
	return "(has(" + pod + ".metadata.ownerReferences) && " + pod +
		".metadata.ownerReferences.exists(o, has(o.controller) && o.controller && "
}

const byOwner = "(request.namespace + '/' + o.kind + '/' + o.name)"

// stamped is the pods whose stamps name budgets with targets: a controller may have found them by the selector of the
// target.
func (g *guarded) stamped(pod string) []List {
	if len(g.stamps) == 0 {
		return nil
	}
	annotations := pod + ".metadata.annotations"
	value := "(request.namespace + '/' + " +
		valueOr(annotations, kruise.PodRelatedPubKey, valueOr(annotations, kruise.PodRelatedPubKeyOld, "''")) + ")"
	return []List{{Before: "(has(" + annotations + ") && ", Value: value, After: ")", Of: sorted(g.stamps)}}
}

// valueOr is an expression for a value that is neither missing nor empty, or else for another one.
func valueOr(annotations, key, or string) string {
	at := annotations + "['" + key + "']"
	return "('" + key + "' in " + annotations + " && " + at + " != '' ? " + at + " : " + or + ")"
}

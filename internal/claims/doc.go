// Package claims makes the volume claims of pods from the claim templates of a workload, in the names, labels and hash
// that the reference gives them.
//
//	claim := claims.New(&set.Spec.VolumeClaimTemplates[i], claims.Identity{Workload: set.Name, Pod: id, ...})
//	claims.Mount(&pod.Spec, set.Spec.VolumeClaimTemplates, set.Name, id)
//	hash, err := claims.Hash(set.Spec.VolumeClaimTemplates)
//	...
//	pool := claims.Pool{Workload: set, Label: key, Claims: observed.Claims} // pods with ids, not ordinals
//	taken, err := pool.Taken(ctx, cache, ids)                               // claim names that pods must wait for
//	ids, blocked := pool.Choose(claims.Demand{...})                         // ids of claims without a pod come first
//	...
//	named := claims.Named{Workload: set.Name, Templates: templates, ...} // pods with ordinals
//	claims := named.Missing(ordinal)              // what a new pod needs besides the claims that exist
//	writes := named.Refer(pod, ordinal, unwanted) // before a pod is deleted: the retention policy
//	ahead := named.Ahead(ordinal)                 // before a pod is updated: its claims grow
//
// A claim name is <template>-<workload>-<pod>, where pod is an instance id of a CloneSet or an ordinal of a
// StatefulSet.
package claims

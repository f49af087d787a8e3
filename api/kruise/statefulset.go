package kruise

// ClaimOwnedByStatefulSetKey is the annotation of a claim that a StatefulSet has expanded, with the set's name.
const ClaimOwnedByStatefulSetKey = "apps.kruise.io/owned-by-asts"

package kruise

const (
	// DeletionProtectionKey is the label with a DeletionProtectionType. It protects the object that carries it:
	// a namespace, a CRD, a workload, a Service or an Ingress.
	DeletionProtectionKey = "policy.kruise.io/delete-protection"
	// DeletionProtectionMessage is part of every refusal; clients look for it.
	DeletionProtectionMessage = "forbidden by ResourcesProtectionDeletion"
)

// DeletionProtectionType is a value of DeletionProtectionKey. Any other value protects nothing.
type DeletionProtectionType string

const (
	// DeletionProtectionTypeAlways refuses deletion until the label is gone.
	DeletionProtectionTypeAlways DeletionProtectionType = "Always"
	// DeletionProtectionTypeCascading refuses deletion while the object has active dependants. A Service or an
	// Ingress has none.
	DeletionProtectionTypeCascading DeletionProtectionType = "Cascading"
)

package protection

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// InstancesGate is the feature gate of Policy.CountInstances, which a refusal names.
const InstancesGate = "DeletionProtectionForCRDCascadingGate"

// Policy is how a cluster protects objects. The zero value protects them, and refuses every definition with the value
// Cascading.
type Policy struct {
	// Disabled allows every deletion.
	Disabled bool
	// CountInstances judges definitions with the value Cascading by their custom resources.
	CountInstances bool
	// ExemptUsers are never refused.
	ExemptUsers []string
	// HoldNamespaces also refuses deletions in a terminating namespace, as the reference does. The namespace stays until
	// the labels are removed.
	HoldNamespaces bool
}

// Input is a deletion under review.
type Input struct {
	Policy Policy
	Kind   Kind
	// Object is the stored object.
	Object metav1.Object
	// Replicas is spec.replicas of a workload. Nil counts as none.
	Replicas *int32
	// User requests the deletion.
	User string
	// Count counts active dependents of the object. It is called for Pods, Claims and Instances, once at most.
	Count func(Dependents) (Count, error)
	// NamespaceTerminating reports whether the namespace of the object is terminating. It is called only for an object
	// that would be refused otherwise. Nil stands for a namespace that is not terminating.
	NamespaceTerminating func() (bool, error)
}

// Count is a number of dependents.
type Count struct {
	N int64
	// AtLeast means that counting ended before the last object.
	AtLeast bool
}

// Code is why a deletion is allowed or refused.
type Code string

// The codes of deletions that are allowed.
const (
	// Disabled means that the policy protects nothing.
	Disabled Code = "Disabled"
	// Terminating means that the object is being deleted already.
	Terminating Code = "Terminating"
	// Unprotected means that the label is missing or has another value.
	Unprotected Code = "Unprotected"
	// NoEffect means that the kind has no dependents that Cascading counts.
	NoEffect Code = "NoEffect"
	// Exempt means that the policy exempts the user.
	Exempt Code = "Exempt"
	// NoDependents means that there are no active dependents.
	NoDependents Code = "NoDependents"
	// NamespaceTerminating means that the deletion of the namespace was admitted.
	NamespaceTerminating Code = "NamespaceTerminating"
	// OwnerDeleted means that the garbage collector deletes a dependent of a workload.
	OwnerDeleted Code = "OwnerDeleted"
)

// The codes of deletions that are refused.
const (
	// Always means that the label has the value Always.
	Always Code = "Always"
	// ActiveDependents means that there are active dependents.
	ActiveDependents Code = "ActiveDependents"
	// NotCounted means that dependents could not be counted.
	NotCounted Code = "NotCounted"
	// GateDisabled means that the policy does not count custom resources.
	GateDisabled Code = "GateDisabled"
)

// Verdict is the answer to a deletion.
type Verdict struct {
	Code Code
	// Value of the label, of a verdict that depends on it.
	Value kruise.DeletionProtectionType
	// Dependents and Count are those that refuse the deletion.
	Dependents Dependents
	Count      Count
	// Message is the text of a refusal; empty otherwise.
	Message string
}

// Refused reports whether the object must not be deleted.
func (v Verdict) Refused() bool {
	switch v.Code {
	case Always, ActiveDependents, NotCounted, GateDisabled:
		return true
	case Disabled, Terminating, Unprotected, NoEffect, Exempt, NoDependents, NamespaceTerminating, OwnerDeleted:
	}
	return false
}

// Decide judges a deletion.
func Decide(in Input) Verdict {
	value := kruise.DeletionProtectionType(in.Object.GetLabels()[kruise.DeletionProtectionKey])
	switch {
	case in.Policy.Disabled:
		return Verdict{Code: Disabled}
	case in.Object.GetDeletionTimestamp() != nil:
		return Verdict{Code: Terminating}
	case value != kruise.DeletionProtectionTypeAlways && value != kruise.DeletionProtectionTypeCascading:
		return Verdict{Code: Unprotected}
	case slices.Contains(in.Policy.ExemptUsers, in.User):
		return Verdict{Code: Exempt, Value: value}
	case followsOwner(in.User, in.Object):
		return Verdict{Code: OwnerDeleted, Value: value}
	}
	v := Verdict{Code: Always, Value: value, Message: Refusal(value)}
	if value == kruise.DeletionProtectionTypeCascading {
		v = in.cascading()
	}
	if !v.Refused() || in.Policy.HoldNamespaces || in.NamespaceTerminating == nil {
		return v
	}
	switch terminating, err := in.NamespaceTerminating(); {
	case err != nil:
		v.Message = fmt.Sprintf("%s; read namespace: %v", v.Message, err)
	case terminating:
		return Verdict{Code: NamespaceTerminating, Value: value}
	}
	return v
}

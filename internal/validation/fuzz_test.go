package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// FuzzCloneSet holds the laws of the rules of CloneSets.
func FuzzCloneSet(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.CloneSet, *appsv1beta1.CloneSet]{
		Check:  validation.CloneSet,
		Update: validation.CloneSetUpdate,
	})
}

// FuzzDaemonSet holds the laws of the rules of DaemonSets.
func FuzzDaemonSet(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.DaemonSet, *appsv1beta1.DaemonSet]{
		Check:  validation.DaemonSet,
		Update: validation.DaemonSetUpdate,
	})
}

// FuzzStatefulSet holds the laws of the rules of StatefulSets.
func FuzzStatefulSet(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.StatefulSet, *appsv1beta1.StatefulSet]{
		Check: validation.StatefulSet,
		Update: func(set, stored *appsv1beta1.StatefulSet) field.ErrorList {
			_, faults := validation.StatefulSetExpansion(set, stored)
			return append(faults, validation.StatefulSetUpdate(set, stored)...)
		},
	})
}

package sidecarsets_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
	"github.com/kruisekit/kruisekit/test/rig/validationtest"
)

// FuzzSidecarSet holds the laws of the rules of SidecarSets.
func FuzzSidecarSet(f *testing.F) {
	validationtest.Fuzz(f, validationtest.Rules[appsv1beta1.SidecarSet, *appsv1beta1.SidecarSet]{
		Check: func(set *appsv1beta1.SidecarSet) field.ErrorList {
			return sidecarsets.Validate(set)
		},
		Update: func(set, other *appsv1beta1.SidecarSet) field.ErrorList {
			_ = sidecarsets.Conflicts(set, []*appsv1beta1.SidecarSet{other})
			return sidecarsets.ValidateUpdate(set, other)
		},
	},
		`{"selector":{"matchExpressions":[{"key":"a","operator":"Like"}]},"namespaceSelector":{},"containers":[{"resourcesPolicy":{},`+
			`"transferEnv":[{"sourceContainerNameFrom":{"fieldRef":{}}}]}]}`,
		`{"containers":[{"name":"a","upgradeStrategy":{"upgradeType":"HotUpgrade"},`+
			`"resourcesPolicy":{"resourcesExpr":{"limits":{"cpu":"max(cpu"}}}}],"patchPodMetadata":[{"annotations":{"":""}}]}`,
		`{"injectionStrategy":{"revision":{}},"updateStrategy":{"type":"Odd","partition":"%","selector":{}},`+
			`"initContainers":[{"restartPolicy":"Always"}]}`,
	)
}

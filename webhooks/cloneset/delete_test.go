package cloneset_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
)

func TestCheckDelete(t *testing.T) {
	cases := map[string]struct {
		why, label string
		replicas   int32
		want       string
	}{
		"no label":         {"nobody asked", "", 5, ""},
		"unknown":          {"case matters", "always", 5, ""},
		"always":           {"with pods or without", "Always", 0, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"},
		"cascading":        {"there are pods", "Cascading", 2, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading, replicas 2>0"},
		"cascading, empty": {"there are none", "Cascading", 0, ""},
		"cascading, unset": {"nobody said that there are any", "Cascading", math.MinInt32, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := &appsv1beta1.CloneSet{}
			set.Labels = map[string]string{"policy.kruise.io/delete-protection": c.label}
			if c.replicas >= 0 {
				set.Spec.Replicas = &c.replicas
			}
			if diff := cmp.Diff(c.want, cloneset.CheckDelete(set)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

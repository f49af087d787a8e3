//go:build envtest

package sidecarset_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

// testUnknown has the API server find what is misspelt in containers and volumes. It is kept all the same.
func testUnknown(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for name, c := range map[string]struct {
			spec string
			want []string
		}{
			"right": {`{"volumes":[{"name":"v","emptyDir":{}}]}`, nil},
			"misspelt": {
				`{"containers":[{"name":"agent","image":"a:1","comand":["a"],"podInjectPolicy":"AfterAppContainer"}],"initContainers":[{"name":"i","image":"i:1","imagePullPolcy":"Never"}],"volumes":[{"name":"v","emptydir":{}}]}`,
				[]string{
					`unknown field "spec.containers[0].comand"`, `unknown field "spec.initContainers[0].imagePullPolcy"`,
					`unknown field "spec.volumes[0].emptydir"`,
				},
			},
		} {
			t.Run(name+"/"+version, func(t *testing.T) {
				set := plain(t, version, "a", c.spec)
				got, err := g.Warnings(t, set)
				if diff := cmp.Diff(c.want, slices.Sorted(slices.Values(got))); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
				if name == "misspelt" && reviewtest.Field(set, "spec", "containers").([]any)[0].(map[string]any)["comand"] == nil {
					t.Errorf("it is lost in %v", set.Object)
				}
			})
		}
	}
}

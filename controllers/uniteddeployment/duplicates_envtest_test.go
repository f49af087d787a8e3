//go:build envtest

package uniteddeployment_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A container may have a variable twice. The workloads follow the template: with two values of the variable, with
// another image, and without what the template loses at last.
func TestDuplicatesOnServer(t *testing.T) {
	t.Parallel()
	kit := bench(t)
	twice := []corev1.EnvVar{{Name: "LEVEL", Value: "1"}, {Name: "LEVEL", Value: "2"}, {Name: "GONE", Value: "soon"}}
	u := on(kit.Namespace, of("Deployment"), selected, func(u *v1beta1.UnitedDeployment) {
		u.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Env = twice
	})
	if err := kit.Client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	follows := func(image string, want ...string) {
		t.Helper()
		kit.Until(func() error {
			all := childrenOn(kit, u)
			for _, subset := range []string{"a", "b"} {
				if all[subset] == nil {
					return fmt.Errorf("there is no subset %s", subset)
				}
				c := containerOf(all[subset])
				var have []string
				variables, _ := c["env"].([]any)
				for _, v := range variables {
					v := v.(map[string]any)
					have = append(have, fmt.Sprint(v["name"], "=", v["value"]))
				}
				if c["image"] != image || !slices.Equal(have, want) {
					return fmt.Errorf("subset %s has %s with %q, want %s with %q", subset, c["image"], have, image, want)
				}
			}
			return nil
		})
		kit.Still()
	}
	change := func(change func(*corev1.Container)) {
		t.Helper()
		if err := kit.Look(u); err != nil {
			t.Fatal(err)
		}
		change(&u.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0])
		if err := kit.Client.Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	follows("web:1", "LEVEL=1", "LEVEL=2", "GONE=soon")
	change(func(c *corev1.Container) { c.Image = "web:2" })
	follows("web:2", "LEVEL=1", "LEVEL=2", "GONE=soon")
	change(func(c *corev1.Container) { c.Env = twice[1:2] })
	follows("web:2", "LEVEL=2")
	change(func(c *corev1.Container) { c.Env = twice })
	follows("web:2", "LEVEL=1", "LEVEL=2", "GONE=soon")
	change(func(c *corev1.Container) { c.Env = nil })
	follows("web:2")
	kit.Asked()
	kit.Still()
	if asked := kit.Asked(); len(asked) > 0 {
		t.Errorf("nothing has changed, and it asks %q", asked)
	}
}

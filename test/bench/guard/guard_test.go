package guard_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// pods of each scenario.
const pods = 20

// What small rollouts write, and in how many passes, is in testdata: for the creation, an update in place, one by other
// pods, and nothing.
func TestWrites(t *testing.T) {
	for name := range kinds() {
		t.Run(name, func(t *testing.T) {
			w, object, template := newWorld(t, kinds()[name], name, pods)
			text := w.cost("creation of 20 pods")
			objects.Change(w.Model, object, func(client.Object) { template.Spec.Containers[0].Image = "web:2" })
			w.Server.Requests()
			text += w.cost("update in place")
			objects.Change(w.Model, object, func(client.Object) {
				template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
			})
			w.Server.Requests()
			storytest.Compare(t, name, text+w.cost("update by other pods")+w.cost("nothing"))
		})
	}
}

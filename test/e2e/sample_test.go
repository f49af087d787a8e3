//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// What docs/cloneset.md tells to type does what it says.
func (m *deployed) testSample(t *testing.T) {
	for _, tag := range []string{"1.27", "1.28"} {
		m.Push(t, image.Spec{Name: "nginx:" + tag, Files: map[string][]byte{"/usr/share/nginx/html/index.html": []byte(tag)}})
	}
	namespace := m.Namespace(t)
	kubectl := func(args ...string) {
		t.Helper()
		if said, err := m.Kubectl(t.Context(), append(args, "-n", namespace)...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, said)
		}
	}
	// Pods by image, once the set has settled.
	eventuallyRuns := func(want string) []string {
		t.Helper()
		var names []string
		eventually(t, func(ctx context.Context) error {
			set, pods := &v1beta1.CloneSet{}, &corev1.PodList{}
			if err := m.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, set); err != nil {
				return err
			}
			if err := m.Client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": "web"}); err != nil {
				return err
			}
			by := map[string]int{}
			names = nil
			for i := range pods.Items {
				if ready(&pods.Items[i]) {
					by[pods.Items[i].Spec.Containers[0].Image]++
				}
				names = append(names, pods.Items[i].Name)
			}
			slices.Sort(names)
			if got := fmt.Sprint(by); got != want || set.Status.ObservedGeneration != set.Generation {
				return fmt.Errorf("ready pods by image: %s, want %s; status %+v", got, want, set.Status)
			}
			return nil
		})
		return names
	}
	kubectl("apply", "-f", "../../config/samples/cloneset.yaml")
	first := eventuallyRuns("map[nginx:1.27:5]")
	kubectl("patch", "cloneset", "web", "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":3}}}}`)
	kubectl("patch", "cloneset", "web", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:1.28"}]`)
	half := eventuallyRuns("map[nginx:1.27:3 nginx:1.28:2]")
	kubectl("patch", "cloneset", "web", "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	all := eventuallyRuns("map[nginx:1.28:5]")
	if !slices.Equal(first, half) || !slices.Equal(first, all) {
		t.Errorf("pods %v became %v and %v", first, half, all)
	}
	kubectl("label", "pod", first[0], "apps.kruise.io/specified-delete=true")
	eventually(t, func(context.Context) error {
		if now := eventuallyRuns("map[nginx:1.28:5]"); slices.Contains(now, first[0]) {
			return fmt.Errorf("%s is still there, of %s", first[0], strings.Join(now, " "))
		}
		return nil
	})
	kubectl("scale", "cloneset", "web", "--replicas=3")
	eventuallyRuns("map[nginx:1.28:3]")
}

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

// pushNginx pushes the images of the samples.
func (m *deployed) pushNginx(t *testing.T) {
	t.Helper()
	for _, tag := range []string{"1.27", "1.28"} {
		m.Push(t, image.Spec{Name: "nginx:" + tag, Files: map[string][]byte{"/usr/share/nginx/html/index.html": []byte(tag)}})
	}
}

// What docs/cloneset.md tells to type does what it says there.
func (m *deployed) testSample(t *testing.T) {
	m.pushNginx(t)
	s := sample{m, m.Namespace(t)}
	// What comes of each change. A partition of 3 changes nothing by itself.
	outcomes := []struct {
		change, pods string
		replaced     int
	}{
		{"apply", "map[nginx:1.27:5]", 5},
		{"partition\":3", "map[nginx:1.27:5]", 0},
		{"nginx:1.28", "map[nginx:1.27:3 nginx:1.28:2]", 0},
		{"partition\":0", "map[nginx:1.28:5]", 0},
		{"specified-delete", "map[nginx:1.28:5]", 1},
		{"scale", "map[nginx:1.28:3]", 0},
	}
	var before []string
	for _, words := range typed(t, "../../docs/cloneset.md") {
		line := strings.Join(words, " ")
		if words[0] == "delete" {
			break // with the namespace
		}
		if strings.Contains(line, "specified-delete") {
			words[2] = before[0] // the document names one of its own
		}
		if said, err := m.Kubectl(t.Context(), append(words, "-n", s.namespace)...); err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, said)
		}
		if len(outcomes) == 0 || !strings.Contains(line, outcomes[0].change) {
			continue
		}
		o := outcomes[0]
		outcomes = outcomes[1:]
		eventually(t, func(ctx context.Context) error {
			now, err := s.run(ctx, o.pods)
			if err != nil {
				return fmt.Errorf("after kubectl %s: %w", line, err)
			}
			fresh := slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(before, name) })
			if len(fresh) != o.replaced {
				return fmt.Errorf("after kubectl %s: pods %v, of which %v are new", line, now, fresh)
			}
			before = now
			return nil
		})
	}
	if len(outcomes) > 0 {
		t.Errorf("the document does not tell to %+v", outcomes)
	}
}

type sample struct {
	*deployed
	namespace string
}

// run is the names of the set's pods, or an error while its ready pods by image are not those wanted.
func (s sample) run(ctx context.Context, want string) ([]string, error) {
	set, pods := &v1beta1.CloneSet{}, &corev1.PodList{}
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "web"}, set); err != nil {
		return nil, err
	}
	if err := s.Client.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": "web"}); err != nil {
		return nil, err
	}
	by := map[string]int{}
	names := make([]string, 0, len(pods.Items))
	for i := range pods.Items {
		if ready(&pods.Items[i]) {
			by[pods.Items[i].Spec.Containers[0].Image]++
		}
		names = append(names, pods.Items[i].Name)
	}
	slices.Sort(names)
	if got := fmt.Sprint(by); got != want || set.Status.ObservedGeneration != set.Generation {
		return nil, fmt.Errorf("ready pods by image: %s, want %s; status %+v", got, want, set.Status)
	}
	return names, nil
}

// What docs/node.md tells to type does what it says there.
func (m *deployed) testNodeDocument(t *testing.T) {
	m.Push(t, image.Spec{Name: "nginx:1.28"})
	namespace := m.Namespace(t)
	waits := 0
	for _, words := range typed(t, "../../docs/node.md") {
		line := strings.Join(words, " ")
		switch {
		case strings.Contains(line, system):
			continue // this deployment has the gate
		case words[0] == "wait":
			words = append(words, "--timeout="+timeout.String())
			waits++
		case words[0] == "delete":
			words = append(words, "--wait=false")
		}
		if said, err := m.Kubectl(t.Context(), append(words, "-n", namespace)...); err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, said)
		}
		if line != "get pod web" {
			continue
		}
		pod := &corev1.Pod{}
		if err := m.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, pod); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]int32{"nginx": 1, "log": 1, "mesh": 0} {
			if n := statuses(pod)[name].RestartCount; n != want {
				t.Errorf("%s restarted %d times, want %d", name, n, want)
			}
		}
	}
	if waits != 3 {
		t.Errorf("the document waits %d times: for the images, the pod and the request", waits)
	}
}

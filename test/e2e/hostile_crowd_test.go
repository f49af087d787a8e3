//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const (
	// crowd is how many writers of one namespace there are, and each how many reviews one of them causes.
	crowd, each = 48, 4
	// writes of another tenant while pods hold connections.
	writes = 50
)

// write has the webhooks review a CloneSet of another tenant, and returns how long that took.
func (m *deployed) write(t *testing.T, during string) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := m.tryWrite(t); err != nil {
		t.Fatalf("during %s: %v", during, err)
	}
	return time.Since(begin)
}

func (m *deployed) tryWrite(t *testing.T) error {
	t.Helper()
	return m.Client.Create(t.Context(), ofEnvironment("default", "during-attacks", 1), client.DryRunAll)
}

// ofEnvironment is a CloneSet with a number of variables.
func ofEnvironment(namespace, name string, variables int) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	main := corev1.Container{Name: "a", Image: "a"}
	for i := range variables {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprintf("A%x", i)})
	}
	set.Spec.Template.Spec.Containers = []corev1.Container{main}
	return set
}

// admitDuringSilence waits until the pods that attack hold what connections they get, and writes meanwhile.
func (m *deployed) admitDuringSilence(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		var all error
		for _, pod := range m.serving(t) {
			path := "/api/v1/namespaces/" + system + "/pods/" + pod.Name + ":8080/proxy/metrics"
			metrics, err := m.Kubectl(ctx, "get", "--raw", path)
			if err != nil {
				return err
			}
			_, rest, _ := strings.Cut(metrics, `kruisekit_connections_refused_total{listener="webhook"} `)
			text, _, _ := strings.Cut(rest, "\n")
			if n, err := strconv.ParseFloat(text, 64); err != nil || n < 512 {
				all = errors.Join(all, fmt.Errorf("%s refused %q connections", pod.Name, text))
			}
		}
		return all
	})
	longest := time.Duration(0)
	for range writes {
		longest = max(longest, m.write(t, "silence"))
	}
	t.Logf("two pods with 512 silent connections, meanwhile a CloneSet took at most %s", longest.Round(time.Millisecond))
}

// admitDuringCrowd has many writers of the tenant cause large reviews, which wait for dry runs, and writes meanwhile.
// Reviews wait in the order of arrival, so a write of another tenant may be late during the crowd, and not afterwards.
func (a *tenant) admitDuringCrowd(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	var admitted, refused atomic.Int64
	for i := range crowd {
		set := ofEnvironment(a.namespace, fmt.Sprintf("crowd-%d", i), []int{60_000, 20_000, 5_000, 500}[i%4])
		all.Add(1)
		go func() {
			defer all.Done()

			for range each {
				if err := a.own.Create(t.Context(), set.DeepCopy(), client.DryRunAll); err != nil {
					refused.Add(1)
				} else {
					admitted.Add(1)
				}
			}
		}()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	n, delayed := 0, 0
	for ended := false; !ended; n++ {
		if err := a.tryWrite(t); err != nil {
			delayed++
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	t.Logf("%d writers of large reviews (%d admitted, %d refused), meanwhile %d of %d CloneSets were too late",
		crowd, admitted.Load(), refused.Load(), delayed, n)
	if admitted.Load() == 0 || delayed == n {
		t.Errorf("no write was answered: %d writes of the crowd, %d others", admitted.Load(), n-delayed)
	}
	a.write(t, "the end of a crowd")
}

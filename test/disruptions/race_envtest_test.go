//go:build envtest

package disruptions_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

func over(name string, total, unavailable int32) *policyv1beta1.PodUnavailableBudget {
	return &policyv1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1beta1.PodUnavailableBudgetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)), ProtectTotalReplicas: &total,
		},
	}
}

// TestDisruptions: what is sent, refused and recorded, and whether two replicas keep one budget.
func TestDisruptions(t *testing.T) {
	g := newGround(t)
	t.Run("Cases", func(t *testing.T) { testCases(t, g.in(t)) })
	t.Run("Exempt", func(t *testing.T) { testExempt(t, g.in(t)) })
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g.in(t)) })
	t.Run("Race", func(t *testing.T) { testRace(t, g.in(t)) })
}

// codeOf is the status code of an error; 200 for none, 0 for an error without a code.
func codeOf(err error) int32 {
	if err == nil {
		return http.StatusOK
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// testRace: 20 clients evict 40 pods at two replicas, under a budget of 12, while the reconciler writes the status of
// the budget.
func testRace(t *testing.T, g *ground) {
	const pods, unavailable, clients = 40, 12, 20
	all := g.pods("race", pods, nil)
	b := over("race", pods, unavailable)
	g.budget(b, pods)
	g.writes.Store(0)
	g.conflicts.Store(0)
	config := rest.CopyConfig(g.Config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	work := make(chan *corev1.Pod, pods)
	for _, pod := range all {
		work <- pod
	}
	close(work)
	var mu sync.Mutex
	codes := map[int32]int{}
	var other []error
	var group sync.WaitGroup
	for range clients {
		group.Add(1)
		go func() {
			defer group.Done()

			for pod := range work {
				err := kube.CoreV1().Pods(namespace).EvictV1(t.Context(),
					&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})
				mu.Lock()
				codes[codeOf(err)]++
				if err != nil &&
					!strings.Contains(err.Error(), `podunavailablebudget "race" is forbidden: pub unavailable allowed is negative`) {
					other = append(other, err)
				}
				mu.Unlock()
			}
		}()
	}
	group.Wait()
	left := &corev1.PodList{}
	if err := g.Client.List(t.Context(), left, client.InNamespace(namespace),
		client.MatchingLabels{"app": "race"}); err != nil {
		t.Fatal(err)
	}
	living := 0
	for i := range left.Items {
		if left.Items[i].DeletionTimestamp == nil {
			living++
		}
	}
	violations := max(0, pods-unavailable-living)
	t.Logf("races tried: %d evictions by %d clients at %d replicas under a budget of %d; answers %v; violations: %d; "+
		"writes of the status %d, conflicts %d",
		pods, clients, replicas, unavailable, codes, violations, g.writes.Load(), g.conflicts.Load())
	if violations > 0 || codes[http.StatusOK] != unavailable && codes[http.StatusCreated] != unavailable ||
		codes[http.StatusTooManyRequests] != pods-unavailable {
		t.Errorf("answers %v, %d pods left; others: %v", codes, living, other)
	}
	if len(other) > 0 {
		t.Errorf("refused for another reason than the budget: %v", other)
	}
	if writes := g.writes.Load() - g.conflicts.Load(); writes > unavailable+20 {
		t.Errorf("%d writes for %d disruptions", writes, unavailable)
	}
	g.until("the status does not show the evictions", func(ctx context.Context) error {
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if b.Status.UnavailableAllowed != 0 || b.Status.CurrentAvailable != pods-unavailable {
			return errors.New("not yet")
		}
		return nil
	})
}

//go:build envtest

package scope_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/rig/scopetest"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// sent is how often a pod came to either path below a base.
func sent(hook *scopetest.Webhook, base string, pod *corev1.Pod) (closed, open int) {
	at := func(path string) int {
		return hook.Sent(scopetest.Call{Path: base + path, Namespace: pod.Namespace, Name: pod.Name})
	}
	return at("/mutate-pod"), at("/mutate-pod-open")
}

// clientOf reaches a webhook at the paths below a base.
func clientOf(hook *scopetest.Webhook, base string) admissionregistrationv1.WebhookClientConfig {
	return scope.Reach{URL: hook.URL + base, CABundle: hook.Authority()}.Client()
}

const rounds, podsPerRound = 6, 60

func TestScope(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	t.Run("Sent", func(t *testing.T) { testSent(t, c) })
	t.Run("Large", func(t *testing.T) { testLarge(t, c) })
}

// Whatever the sets and pods: an API server sends a pod exactly if something concerns it, at the path for what must
// not be missed exactly if something of that kind does, and never more than once for each kind of namespaces.
func testSent(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	hook := scopetest.New(t)
	for name, labels := range places() {
		if err := c.Client.Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pods"}}
	if err := c.Client.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	sentPods, notSent := 0, 0
	for round := range uint64(rounds) {
		d := newDraw(seed + round)
		base := fmt.Sprintf("/round-%d", round) // what comes here, the API server sends by the entries of this round
		sets := d.sets(1 + d.IntN(10))
		canary := newSet(t, "canary", `selector: {matchLabels: {canary: x}}`)
		in := world{
			Input: scope.Input{Client: clientOf(hook, base), Namespace: "kruise-system"}, Sets: append(sets, canary),
			Owned: d.IntN(2) == 0, All: d.IntN(3) == 0, Launch: d.IntN(2) == 0, Liveness: d.IntN(2) == 0,
			Closed: one(d, nil, []string{"one"}), Open: one(d, nil, []string{"one", "two"}),
		}
		configuration.Webhooks = compute(t, in).Entries
		if err := c.Client.Update(t.Context(), configuration); err != nil {
			t.Fatalf("seed %d: the API server does not take the entries: %v", seed+round, err)
		}
		untilSent(t, c, hook, base)
		for n := range podsPerRound {
			pod := d.pod(int(round)*1000 + n)
			if err := c.Client.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
				t.Fatalf("seed %d: %v", seed+round, err)
			}
			wantClosed, wantOpen := concerns(in, pod)
			closed, open := sent(hook, base, pod)
			if (closed > 0) != wantClosed || !wantClosed && (open > 0) != wantOpen {
				t.Errorf("seed %d: pod %s/%s %v: sent %d and %d times, want %t and %t\n%+v",
					seed+round, pod.Namespace, pod.Name, pod.Labels, closed, open, wantClosed, wantOpen, in)
			}
			if closed+open > 0 {
				sentPods++
			} else {
				notSent++
			}
		}
	}
	if err := c.Client.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pods were sent, %d were not", sentPods, notSent)
	if sentPods == 0 || notSent == 0 {
		t.Error("nothing was tried")
	}
}

// untilSent waits until the API server goes by the entries of a round.
func untilSent(t *testing.T, c *cluster.Cluster, hook *scopetest.Webhook, base string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "three", Name: "canary", Labels: map[string]string{"canary": "x"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			if err := c.Client.Create(ctx, pod.DeepCopy(), client.DryRunAll); err != nil {
				return false, err
			}
			closed, _ := sent(hook, base, pod)
			return closed > 0, nil
		})
	if err != nil {
		t.Fatalf("the canary is not sent to %s: %v", base, err)
	}
}

// The largest expressions and lists that are written are accepted by an API server, and pods pass them in time.
func testLarge(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	hook := scopetest.New(t)
	in := input(newSet(t, "canary", `selector: {matchLabels: {canary: c}}`))
	for i := range 127 {
		in.Sets = append(in.Sets, newSet(t, fmt.Sprintf("k%d", i), fmt.Sprintf(
			`selector: {matchExpressions: [{key: k%[1]d, operator: Exists}, {key: "zone-%[1]d", operator: NotIn, values: [x]}]}`, i)))
	}
	for i := range 2800 {
		in.Open = append(in.Open, fmt.Sprintf("some-namespace-of-a-tenant-%04d", i))
	}
	in.Client, in.Closed, in.Owned, in.Launch = clientOf(hook, ""), in.Open, true, true
	computed := compute(t, in)
	if len(computed.Notes) > 0 {
		t.Fatalf("notes %v", computed.Notes)
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Webhooks: computed.Entries,
	}
	if err := c.Client.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	created, namespace := time.Now(), c.Namespace(t)
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
	}
	canary := pod(map[string]string{"canary": "c"})
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			err := c.Client.Create(ctx, canary.DeepCopy(), client.DryRunAll)
			closed, _ := sent(hook, "", canary)
			return closed > 0, err
		}); err != nil {
		t.Fatal(err)
	}
	inForce := time.Since(created)
	before, _ := sent(hook, "", canary)
	many := map[string]string{}
	for i := range 500 {
		many[fmt.Sprintf("example.com/some-label-of-a-pod-%d", i)] = "x"
	}
	began := time.Now()
	const tries = 50
	for range tries {
		if err := c.Client.Create(t.Context(), pod(many), client.DryRunAll); err != nil {
			t.Fatalf("a pod with %d labels: %v", len(many), err)
		}
	}
	t.Logf("%d entries: %s for the dry run of a pod that is not sent, in force after %s",
		len(computed.Entries), time.Since(began)/tries, inForce)
	if after, _ := sent(hook, "", canary); after != before {
		t.Error("a pod that nothing selects was sent")
	}
}

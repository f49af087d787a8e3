//go:build envtest

package scope_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/scope/scopetest"
	"github.com/kruisekit/kruisekit/test/cluster"
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

const rounds, podsPerRound = 12, 60

// Whatever the sets and pods: an API server sends a pod exactly if something concerns it, at the path for what must
// not be missed exactly if something of that kind does, and never more than once for each kind of namespaces.
func TestSent(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
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
		if round >= rounds/2 { // more than clauses are made of, so that lists are
			sets = append(sets, filling(t)...)
		}
		canary := newSet(t, "canary", `selector: {matchLabels: {canary: x}}`)
		in := world{
			Input: scope.Input{Client: clientOf(hook, base), Namespace: "kruise-system"}, Sets: append(sets, canary),
			Owned: d.IntN(2) == 0, All: d.IntN(3) == 0, Launch: d.IntN(2) == 0, Liveness: d.IntN(2) == 0,
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
	t.Logf("%d pods were sent, %d were not", sentPods, notSent)
	if sentPods == 0 || notSent == 0 {
		t.Error("nothing was tried")
	}
}

// filling are sets of which no pod of the world has the labels, for each form of a condition.
func filling(t *testing.T) []*appsv1beta1.SidecarSet {
	var sets []*appsv1beta1.SidecarSet
	for i := range 30 {
		sets = append(sets, newSet(t, fmt.Sprintf("key-%d", i),
			fmt.Sprintf(`selector: {matchExpressions: [{key: key-%d, operator: Exists}]}`,
				i)), newSet(t, fmt.Sprintf("pair-%d", i), fmt.Sprintf(`selector: {matchLabels: {pair-%d: x}}`, i)), newSet(t,
			fmt.Sprintf("tuple-%d", i), fmt.Sprintf(`selector: {matchLabels: {app: app-%[1]d, tier: tier-%[1]d}}`, i)), newSet(t,
			fmt.Sprintf("scoped-tuple-%d", i),
			fmt.Sprintf(`{selector: {matchLabels: {app: app-%[1]d, tier: tier-%[1]d}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: tenant-%[1]d}}}`,
				i)), newSet(t, fmt.Sprintf("several-%d", i),
			fmt.Sprintf(`selector: {matchExpressions: [{key: several-%[1]d, operator: Exists}, {key: app, operator: Exists}]}`,
				i)), newSet(t, fmt.Sprintf("further-%d", i), fmt.Sprintf(
			`selector: {matchExpressions: [{key: further-%[1]d, operator: Exists}, {key: tier, operator: DoesNotExist}]}`,
			i)), newSet(t, fmt.Sprintf("last-%d", i),
			fmt.Sprintf(`selector: {matchExpressions: [{key: last-%[1]d, operator: In, values: [x]}, {key: tier, operator: NotIn, values: [x]}]}`,
				i)), newSet(t, fmt.Sprintf("scoped-%d", i),
			fmt.Sprintf(`{selector: {matchLabels: {app: app-%[1]d}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: tenant-%[1]d}}}`,
				i)))
	}
	return sets
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

// The largest scope that is written is taken by an API server, and pods pass it in time; one that is not sent is
// created also while no webhook answers.
func TestLarge(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	hook := scopetest.New(t)
	var sets []*appsv1beta1.SidecarSet
	for i := range 2500 { // keys of their own, values of two labels, and now and then a form that is in no list
		spec := fmt.Sprintf(`selector: {matchLabels: {k%d: x}}`, i)
		switch i % 10 {
		case 1, 2, 3:
			spec = fmt.Sprintf(`selector: {matchLabels: {app: a-%[1]d, zone: z-%[1]d}}`, i)
		case 4:
			spec = fmt.Sprintf(`selector: {matchExpressions: [{key: k%[1]d, operator: Exists}, {key: "zone-%[1]d", operator: NotIn, values: [x]}]}`,
				i)
		}
		sets = append(sets, newSet(t, fmt.Sprintf("k%d", i), spec))
	}
	for _, n := range []int{0, 1000, 2500} {
		in := input(append(sets[:n:n], newSet(t, "canary", fmt.Sprintf(`selector: {matchLabels: {canary: c%d}}`, n)))...)
		in.Client = clientOf(hook, "")
		for i := range 23 {
			in.Sets = append(in.Sets, newSet(t, fmt.Sprintf("n%d", i),
				fmt.Sprintf(`{selector: {matchLabels: {app: other}}, namespaceSelector: {matchLabels: {env: e%d}}}`, i)))
		}
		computed := compute(t, in)
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Webhooks: computed.Entries,
		}
		if err := c.Client.Create(t.Context(), configuration); err != nil {
			t.Fatal(err)
		}
		created := time.Now()
		namespace := c.Namespace(t)
		pod := func(labels map[string]string) *corev1.Pod {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}
		}
		canary := pod(map[string]string{"canary": fmt.Sprintf("c%d", n)})
		if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				err := c.Client.Create(ctx, canary.DeepCopy(), client.DryRunAll)
				closed, _ := sent(hook, "", canary)
				return closed > 0, err
			}); err != nil {
			t.Fatalf("%d sets: %v", n, err)
		}
		inForce := time.Since(created)
		before, _ := sent(hook, "", canary)
		began := time.Now()
		many := map[string]string{}
		for i := range 500 {
			many[fmt.Sprintf("example.com/some-label-of-a-pod-%d", i)] = "x"
		}
		if err := c.Client.Create(t.Context(), pod(many), client.DryRunAll); err != nil {
			t.Errorf("%d sets: a pod with %d labels: %v", n, len(many), err)
		}
		const tries = 50
		for range tries {
			if err := c.Client.Create(t.Context(), pod(map[string]string{"app": "web"}), client.DryRunAll); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%d sets: %d entries, %s for the dry run of a pod that is not sent, in force after %s, notes %v",
			n, len(computed.Entries), time.Since(began)/tries, inForce, computed.Notes)
		if after, _ := sent(hook, "", canary); computed.Entries[0].MatchConditions[0].Expression != "true" &&
			after != before {
			t.Errorf("%d sets: it was sent", n)
		}
		if err := c.Client.Delete(t.Context(), configuration); err != nil {
			t.Fatal(err)
		}
	}
	testDown(t, c, hook)
}

// testDown stops the webhook.
func testDown(t *testing.T, c *cluster.Cluster, hook *scopetest.Webhook) {
	t.Helper()
	in := input(newSet(t, "a", `selector: {matchLabels: {app: web}}`),
		open(newSet(t, "b", `selector: {matchLabels: {app: nice}}`)))
	in.Client, in.Owned, in.Launch = clientOf(hook, ""), true, true
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Webhooks: compute(t, in).Entries,
	}
	if err := c.Client.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	hook.Close()
	namespace := c.Namespace(t)
	create := func(ctx context.Context, app string) error {
		return c.Client.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-", Labels: map[string]string{"app": app}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		})
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return create(ctx, "web") != nil, nil
		})
	if err != nil {
		t.Fatal(errors.New("a pod that a set selects is created though nobody answers"))
	}
	for _, app := range []string{"other", "nice"} {
		if err := create(t.Context(), app); err != nil {
			t.Errorf("app %s: %v", app, err)
		}
	}
}

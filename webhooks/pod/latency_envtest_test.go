//go:build envtest

package pod_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// What the webhook costs a client that creates a pod, through an API server, by turns: pods that three of a hundred
// sets select, pods that none does, and pods that have by themselves what the first ones get. To tell what of it is the
// webhook's own, there is one that gives the same answer without looking at anything. Times are the machine's as much
// as ours: without -latency=5ms, on a quiet one, the proportion is judged.
func testLatency(t *testing.T, g *ground) {
	sets := installed(t, 100, 3)
	g.have(t, concerned{Owned: true, Launch: true}, sets...)
	g.answerAlike(t, sets)
	l := &latency{ground: g, namespace: g.Namespace(t), took: map[string][]time.Duration{}}
	template := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte(usual), template); err != nil {
		t.Fatal(err)
	}
	template.GenerateName, template.OwnerReferences, template.ManagedFields = "", nil, nil
	whole := &corev1.Pod{}
	for range 20 { // connections, and what is compiled once
		whole = l.create(t, "warm", template, "web")
		if alike := l.create(t, "warm", template, alike); len(whole.Spec.Containers) != 6 || len(alike.Spec.Containers) != 6 {
			t.Fatalf("pods have %d and %d containers", len(whole.Spec.Containers), len(alike.Spec.Containers))
		}
	}
	whole.ObjectMeta = metav1.ObjectMeta{Labels: whole.Labels, Annotations: whole.Annotations}
	for range *latencyPods {
		l.create(t, "injected", template, "web")
		l.create(t, "whole", whole, "nobody")
		l.create(t, "alike", template, alike)
		l.create(t, "plain", template, "nobody")
	}
	for _, percent := range []int{50, 90, 99} {
		t.Logf("p%d: %s where three sidecars are injected, %s by an answer that is there already (%s less), "+
			"%s where they are there (%s less), %s without them",
			percent, l.at("injected", percent), l.at("alike", percent), l.at("injected", percent)-l.at("alike", percent),
			l.at("whole", percent), l.at("injected", percent)-l.at("whole", percent), l.at("plain", percent))
	}
	if with, without := l.at("injected", 50), l.at("whole", 50); with > 5*without {
		t.Errorf("half of the pods take %s rather than %s", with, without)
	}
	if more := l.at("injected", 99) - l.at("whole", 99); *mostLatency > 0 && more > *mostLatency {
		t.Errorf("one in a hundred pods takes %s more", more)
	}
}

var (
	mostLatency = flag.Duration("latency", 0,
		"how much longer the creation of a pod may take, at the 99th percentile; 0 is not judged")
	latencyPods = flag.Int("pods", 150, "how many pods of each kind are created for that")
	latencyPace = flag.Duration("pace", 0,
		"how long to wait between them: without, an API server on few cores is never idle")
)

// alike is the label of pods that are sent to a webhook that gives always the same answer.
const alike = "alike"

// answerAlike has such pods sent to a webhook that patches them as ours does with those that the sets select.
func (g *ground) answerAlike(t *testing.T, sets []*appsv1beta1.SidecarSet) {
	t.Helper()
	var known admissionv1.AdmissionReview
	if err := json.Unmarshal(admissionOf(t, hook(t, nil, pod.Options{}, sets...))(), &known); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Request struct{ UID types.UID }
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := known
		answer.Response = known.Response.DeepCopy()
		answer.Response.UID = asked.Request.UID
		_ = json.NewEncoder(w).Encode(answer)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	e := g.config.Webhooks[0].DeepCopy()
	e.Name, e.NamespaceSelector, e.MatchConditions = alike+".example.com", nil, nil
	e.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": alike}}
	e.ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	g.config.Webhooks = append(g.config.Webhooks, *e)
	if err := g.Client.Update(t.Context(), g.config); err != nil {
		t.Fatal(err)
	}
	g.until(t, "nothing is answered alike", func(ctx context.Context) error {
		p := newPod(t, "default",
			`{metadata: {name: p, labels: {app: alike}, annotations: {a: b}}, spec: {containers: [{name: main, image: m}], volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]}}`)
		if err := g.Client.Create(ctx, p, client.DryRunAll); err == nil {
			return errors.New("it is created as it is") // the answer is for pods with more containers, and cannot be applied
		}
		return nil
	})
}

type latency struct {
	*ground
	namespace string
	n         int
	took      map[string][]time.Duration
}

func (l *latency) create(t *testing.T, what string, template *corev1.Pod, app string) *corev1.Pod {
	t.Helper()
	p := template.DeepCopy()
	p.Namespace, p.Name, p.Labels["app"] = l.namespace, fmt.Sprint("p-", l.n), app
	l.n++
	time.Sleep(*latencyPace) //nolint:forbidigo // the pace of a client, not a wait for anything
	begin := time.Now()
	if err := l.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	l.took[what] = append(l.took[what], time.Since(begin))
	return p
}

func (l *latency) at(what string, percent int) time.Duration {
	all := slices.Sorted(slices.Values(l.took[what]))
	return all[len(all)*percent/100-1].Round(time.Microsecond)
}

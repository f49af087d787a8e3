package runtimeclient_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // what authors of operators test with

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/ledger"
)

func siteTemplate(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
		Containers:     []corev1.Container{{Name: "main", Image: image}},
	}}
}

// sitePod runs the image web:1, at the revision web-1.
func sitePod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-0", UID: "1", Labels: map[string]string{kruise.PodRevisionLabelKey: "web-1"},
	}}
	pod.Spec = siteTemplate("web:1").Spec
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "web:1", ImageID: "sha256:1"}}
	return pod
}

// Reconcile of an operator with a loop over its pods of its own: each pod goes to the revision web-2.
func Example_updatePod() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithObjects(sitePod()).WithStatusSubresource(&corev1.Pod{}).Build()
	change, err := inplace.Diff(siteTemplate("web:1"), siteTemplate("web:2"), inplace.Policy{}) // once for all pods
	if err != nil {
		fmt.Println("recreate:", err)
		return
	}
	reconcile := func() {
		pod := &corev1.Pod{}
		if err := c.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web-0"}, pod); err != nil {
			fmt.Println(err)
			return
		}
		pod, action, err := driver.UpdatePod(ctx, runtimeclient.Sender(c, c),
			inplace.Update{Pod: pod, Change: change, Revision: "web-2"}, driver.PodOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pod.Spec.Containers[0].Image, action.Verdict, action.After, action.Notes)
	}
	reconcile() // out of traffic, and the new image
	reconcile() // the node has not started it
	startContainers(ctx, c)
	reconcile() // back into traffic
	// Output:
	// web:2 Wait 10m0s [InPlaceImage web-0: container main does not run image web:2 yet]
	// web:2 Wait 10m0s [InPlaceImage web-0: container main does not run image web:2 yet]
	// web:2 Complete 0s []
}

// startContainers has the pod run its image, as the kubelet does.
func startContainers(ctx context.Context, c client.Client) {
	pod := &corev1.Pod{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web-0"}, pod); err != nil {
		panic(err)
	}
	s := &pod.Status.ContainerStatuses[0]
	s.Image = pod.Spec.Containers[0].Image
	s.ImageID, s.Ready = "id of "+s.Image, true
	if err := c.Status().Update(ctx, pod); err != nil {
		panic(err)
	}
}

// An update of an image costs three writes and no read, whatever the number of passes, and each pass sees what the one
// before has written although the cache does not.
func TestUpdateRecorded(t *testing.T) {
	ctx, owner := t.Context(), types.NamespacedName{Namespace: "shop", Name: "site"}
	server := newCounted(sitePod())
	key := types.NamespacedName{Namespace: "shop", Name: "web-0"}
	observe := func() *corev1.Pod {
		pod := &corev1.Pod{}
		if err := server.Get(ctx, key, pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	pods := ledger.New[*corev1.Pod](server, time.Now)
	c := &runtimeclient.Recording{Client: server, Owner: owner, Ledgers: []driver.Recorder{pods}}
	change, err := inplace.Diff(siteTemplate("web:1"), siteTemplate("web:2"), inplace.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	stale := observe()
	pass := func(want inplace.Verdict, writes int, cached *corev1.Pod) {
		t.Helper()
		all, _, err := pods.Overlay(ctx, owner, []*corev1.Pod{cached})
		if err != nil || len(all) != 1 {
			t.Fatalf("%d pods, %v", len(all), err)
		}
		server.writes, server.reads = 0, 0
		_, action, err := driver.UpdatePod(ctx, runtimeclient.Sender(c, c),
			inplace.Update{Pod: all[0], Change: change, Revision: "web-2"}, driver.PodOptions{})
		if err != nil || action.Verdict != want || server.writes != writes || server.reads != 0 {
			t.Errorf("%s after %d writes and %d reads, %v", action.Verdict, server.writes, server.reads, err)
		}
	}
	pass(inplace.Wait, 2, stale)
	pass(inplace.Wait, 0, stale) // the cache shows neither
	pass(inplace.Wait, 0, observe())
	startContainers(ctx, server)
	pass(inplace.Complete, 1, observe())
	pass(inplace.Complete, 0, observe())
}

func TestUpdateOutcomes(t *testing.T) {
	timeout := apierrors.NewTimeoutError("etcd is slow", 1)
	for name, row := range map[string]struct {
		// world is what has happened since the pod was observed.
		world    func(context.Context, client.Client, *corev1.Pod) error
		revision string
		err      error
		verdict  inplace.Verdict
		note     string
		fails    bool
	}{
		"another pod has the name: the pod is observed again, and nothing has failed": {
			world: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				again := sitePod()
				again.UID = "2"
				return errors.Join(c.Delete(ctx, p), c.Create(ctx, again))
			},
			revision: "web-2",
			verdict:  inplace.Wait,
			note:     driver.NoteOutdated,
		},
		"the pod is gone: there is nothing to do": {
			revision: "web-2", verdict: inplace.Ignore,
			world: func(ctx context.Context, c client.Client, p *corev1.Pod) error { return c.Delete(ctx, p) },
		},
		"an unknown outcome: the next pass observes what was written": {revision: "web-2", err: timeout, fails: true},
		"no revision: the pod would count as updated":                 {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			server, change := newCounted(sitePod()), &inplace.Change{Images: map[string]string{"main": "web:2"}}
			pod := sitePod()
			if row.world != nil {
				if err := row.world(t.Context(), server, pod.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			server.err = row.err
			_, action, err := driver.UpdatePod(t.Context(), runtimeclient.Sender(server, server),
				inplace.Update{Pod: pod, Change: change, Revision: row.revision}, driver.PodOptions{})
			if (err != nil) != row.fails || action.Verdict != row.verdict || row.err != nil && !errors.Is(err, row.err) {
				t.Errorf("%+v, %v", action, err)
			}
			if row.note != "" && (len(action.Notes) != 1 || action.Notes[0].Code != row.note || action.After == 0) {
				t.Errorf("%+v", action)
			}
		})
	}
}

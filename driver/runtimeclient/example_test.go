package runtimeclient_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // what authors of operators test with

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// A reconciler writes with a client that records, and its next pass sees the pod before the cache does.
func ExampleRecording() {
	ctx, manager, now := context.Background(), fake.NewFakeClient(), time.Now
	pods := ledger.New[*corev1.Pod](manager, now) // a field of the reconciler, with mgr.GetAPIReader()
	site := types.NamespacedName{Namespace: "shop", Name: "web"}

	c := &runtimeclient.Recording{Client: manager, Owner: site, Ledgers: []driver.Recorder{pods}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	if err := c.Create(ctx, pod); err != nil {
		fmt.Println(err)
		return
	}
	label := client.MergeFrom(pod.DeepCopy())
	pod.Labels = map[string]string{"shard": "7"}
	if err := c.Patch(ctx, pod, label); err != nil {
		fmt.Println(err)
		return
	}

	var cached []*corev1.Pod // the cache shows none of it yet
	seen, _, err := pods.Overlay(ctx, site, cached)
	fmt.Println(len(seen), seen[0].Name, seen[0].Labels, err)
	// Output: 1 web-0 map[shard:7] <nil>
}

// An operator of pods observes, plans and runs a pass. Its next pass finds nothing left to do.
func ExampleWorkloads() {
	ctx, manager := context.Background(), fake.NewFakeClient()
	w := runtimeclient.NewWorkloads(manager, manager, runtimeclient.WorkloadsOptions{})
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "7"}} // of any kind
	of := client.MatchingLabels{"site": site.Name}
	template := &corev1.PodTemplateSpec{}
	template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	for range 2 {
		seen, err := w.Observe(ctx, site, of)
		data, invalid := revision.Encode(template)
		in := workload.Input{
			Owner:     workload.OwnedBy(site, corev1.SchemeGroupVersion.WithKind("ConfigMap"), of),
			Scale:     scale.Input{Limits: scale.Limits{Replicas: 3, MaxUnavailable: 1}},
			Instances: workload.Pods(seen.Pods),
		}
		failed := in.SetHistory(workload.History{Data: data, Stored: seen.Revisions, Limit: 10})
		if err := errors.Join(err, invalid, failed); err != nil {
			fmt.Println(err)
			return
		}
		pass, err := w.Run(ctx, site, in)
		fmt.Println(pass.Counts().Pods, "observed,", len(pass.Creations()), "created,", err)
	}
	// Output:
	// 0 observed, 3 created, <nil>
	// 3 observed, 0 created, <nil>
}

// The name of a revision is taken by another owner. An operator that has no collision count in its status counts up
// until a name is free.
func ExampleSender_nameTaken() {
	ctx := context.Background()
	data, err := revision.Encode(&corev1.PodTemplateSpec{})
	if err != nil {
		fmt.Println(err)
		return
	}
	wanted := revision.Input{Owner: "web", Data: data}
	other := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: revision.Resolve(wanted).Name,
		OwnerReferences: []metav1.OwnerReference{{UID: "other", Controller: ptr.To(true)}},
	}}
	c := fake.NewFakeClient(other)
	for {
		store, err := revision.Store(revision.Wanted{
			Resolution: revision.Resolve(wanted), Namespace: "shop",
			Owner: metav1.OwnerReference{APIVersion: "v1", Kind: "Site", Name: "web", UID: "1", Controller: ptr.To(true)},
		})
		if err == nil {
			err = driver.Run(ctx, store, driver.Options[*write.Write]{Send: runtimeclient.Sender(c, c)})
		}
		if errors.As(err, new(*revision.TakenError)) {
			wanted.Collisions = ptr.To(ptr.Deref(wanted.Collisions, 0) + 1)
			continue
		}
		fmt.Println(store.Newest().Name != other.Name, *wanted.Collisions, err)
		return
	}
	// Output: true 1 <nil>
}

package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// reconcile brings three pods a step closer to the template: it creates them, and updates them in place, one at a time. The
// README shows it.
func reconcile(ctx context.Context, pods typed.PodInterface, current, update workload.Revision, template *corev1.PodTemplateSpec) error {
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"}) // observe
	if err != nil {
		return err
	}
	in := workload.Input{
		Scale:    scale.Input{Now: time.Now(), Limits: scale.Limits{Replicas: 3, MaxUnavailable: 1}},
		Current:  current,
		Update:   update,
		Strategy: workload.InPlaceIfPossible,
	}
	for i := range list.Items {
		in.Instances = append(in.Instances, workload.Pods([]*corev1.Pod{&list.Items[i]})...)
	}
	in.Build = func(creations []workload.Creation) (all [][]write.Object, _ error) {
		for _, c := range creations {
			pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
			pod.GenerateName, pod.Labels[kruise.PodRevisionLabelKey] = "web-", c.Revision
			inplace.EnsureReadinessGate(&pod.Spec) // takes the pod out of traffic during an update
			all = append(all, []write.Object{pod})
		}
		return all, nil
	}
	pass, err := workload.Plan(in) // decide: no I/O in here
	if err != nil {
		return err
	}
	if err := clientgo.Run(ctx, pods, pass); err != nil { // act
		return err
	}
	fmt.Println(pass.Notes()) // report
	return nil
}

// Three pods are created, and a new image reaches them one pod at a time. No pod is recreated.
func ExampleRun() {
	ctx, pods := context.Background(), newPods()
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}
	encode := func(name, image string) workload.Revision {
		template.Spec.Containers[0].Image = image
		data, err := revision.Encode(template)
		if err != nil {
			fmt.Println(err)
		}
		return workload.Revision{Name: name, Data: data}
	}
	rollout := func(passes int, current, update workload.Revision) {
		for range passes { // an operator reconciles when a pod changes
			if err := errors.Join(reconcile(ctx, pods, current, update, template), settle(ctx, pods)); err != nil {
				fmt.Println(err)
			}
		}
	}
	first := encode("web-1", "web:1")
	rollout(1, first, first)
	rollout(7, first, encode("web-2", "web:2"))
	fmt.Print(describe(ctx, pods))
	// Output:
	// []
	// [UpdateLimited: 2 instances wait to be updated (unavailable: 3, at most: 1)]
	// [UpdateLimited: 2 instances wait to be updated (unavailable: 1, at most: 1) NotAvailable: 1 instance waits to become available]
	// [UpdateLimited: 1 instance waits to be updated (unavailable: 1, at most: 1)]
	// [UpdateLimited: 1 instance waits to be updated (unavailable: 1, at most: 1) NotAvailable: 1 instance waits to become available]
	// []
	// [NotAvailable: 1 instance waits to become available]
	// []
	// web-0 web:2 restarts: 1 ready: True
	// web-1 web:2 restarts: 1 ready: True
	// web-2 web:2 restarts: 1 ready: True
}

// Command embed is a whole operator of a resource of its own: it keeps a number of bare pods, and updates them in place.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client, ctx := kubernetes.NewForConfigOrDie(config), context.Background()
	wait.Until(func() { // a real operator watches
		var list struct{ Items []fleet }
		raw, err := client.RESTClient().Get().AbsPath("/apis/example.com/v1/fleets").DoRaw(ctx)
		log.Println("fleets:", errors.Join(err, json.Unmarshal(raw, &list)))
		for _, f := range list.Items {
			log.Println(f.Name, reconcile(ctx, &f, client.CoreV1().Pods(f.Namespace)))
		}
	}, time.Second, nil)
}

// reconcile brings the pods of a fleet a step closer to what it asks for.
func reconcile(ctx context.Context, f *fleet, pods typed.PodInterface) error {
	template, failed := revision.Encode(&f.Spec.Template)
	have, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "fleet=" + f.Name})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	hash := revision.Hash(template, nil)
	in := scale.Input{Now: time.Now(), Limits: f.Spec.Limits}
	for i := range have.Items {
		pod := &have.Items[i]
		updated := pod.Labels[revisionLabel] == hash
		if pod.DeletionTimestamp == nil {
			in.Instances = append(in.Instances, scale.Instance{Name: pod.Name, Pods: []*corev1.Pod{pod}, Updated: updated})
		}
		if updated { // what has begun goes on
			err = errors.Join(err, drive(ctx, pods, inplace.Update{Pod: pod, Revision: hash}))
		}
	}
	plan, failed := scale.Plan(in)
	log.Println(f.Name, plan.Notes)
	for range plan.Create {
		_, failed := pods.Create(ctx, f.pod(hash, string(template)), metav1.CreateOptions{})
		err = errors.Join(err, failed)
	}
	for _, old := range plan.Update {
		// A pod's template could be in a ControllerRevision, see revision.Resolve, and one Diff do for all pods that have it.
		from, _ := revision.Decode([]byte(old.Pods[0].Annotations[templateKey]))
		change, blocked := inplace.Diff(from, &f.Spec.Template, inplace.Policy{})
		if blocked != nil {
			log.Println(f.Name, old.Name, "is recreated:", blocked)
			plan.Delete = append(plan.Delete, old)
			continue
		}
		record := map[string]string{templateKey: string(template)}
		err = errors.Join(err, drive(ctx, pods, inplace.Update{Pod: old.Pods[0], Change: change, Revision: hash, Annotations: record}))
	}
	for _, surplus := range plan.Delete {
		err = errors.Join(err, pods.Delete(ctx, surplus.Name, metav1.DeleteOptions{}))
	}
	return errors.Join(err, failed)
}

// drive makes the writes that a pod needs now.
func drive(ctx context.Context, pods typed.PodInterface, u inplace.Update) error {
	action, err := inplace.Next(u, inplace.Policy{}, time.Now())
	if err != nil || action.Verdict != inplace.Write {
		return err
	}
	patch, err := action.Write.Data()
	if err == nil {
		u.Pod, err = pods.Patch(ctx, u.Pod.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, action.Write.Subresource)
	}
	if err != nil {
		return err
	}
	return drive(ctx, pods, u)
}

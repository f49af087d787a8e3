package native_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
)

// rollOutDeployment updates the pods of a Deployment of an operator, which sets spec.paused and native.HoldKey whenever
// it changes the template. Call it when one of the objects changes, and after the time that it returns.
func rollOutDeployment(ctx context.Context, c kubernetes.Interface, namespace, name string) (time.Duration, error) {
	d, err := c.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	of := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)}
	pods, err := c.CoreV1().Pods(namespace).List(ctx, of)
	sets, errSets := c.AppsV1().ReplicaSets(namespace).List(ctx, of)
	revisions, errRevisions := c.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{})
	if err := errors.Join(err, errSets, errRevisions); err != nil {
		return 0, err
	}
	plan := native.Deployment(d, native.Observed{
		Now: time.Now(), Pods: pointers(pods.Items), ReplicaSets: pointers(sets.Items),
		Revisions: pointers(revisions.Items),
	}, native.Rollout{})
	pass, err := workload.Plan(plan.Input)
	if err == nil {
		err = clientgo.Run(ctx, c, pass)
	}
	if err != nil {
		return 0, err
	}
	for _, w := range plan.Writes(pass) {
		if _, err := clientgo.Sender(c)(ctx, w); err != nil {
			return 0, err
		}
	}
	return pass.RequeueAfter(), nil
}

// ExampleDeployment rolls out the image of a Deployment of one pod, which is held.
func ExampleDeployment() {
	ctx, pod := context.Background(), podOf("db-0", "", "app:1")
	delete(pod.Labels, appsv1.ControllerRevisionHashLabelKey)
	owner := &pod.OwnerReferences[0]
	owner.Kind, owner.Name, owner.UID = "ReplicaSet", "db-1", "uid-db-1"
	set := &appsv1.ReplicaSet{ObjectMeta: controlled("db-1", map[string]string{"app": "db"})}
	set.ResourceVersion, set.Spec.Replicas, set.Status.Replicas = "1", ptr.To(int32(1)), 1
	set.Spec.Selector, set.Spec.Template = &metav1.LabelSelector{MatchLabels: pod.Labels}, templateOf("app:1")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid"}}
	d.Annotations = map[string]string{native.HoldKey: "1"}
	d.Spec.Paused, d.Spec.Replicas, d.Spec.Template = true, ptr.To(int32(1)), templateOf("app:2")
	d.Spec.Selector = set.Spec.Selector
	c := &cluster{Clientset: fake.NewClientset(d, set, pod)}
	for range 4 {
		if _, err := rollOutDeployment(ctx, c, "shop", "db"); err != nil {
			fmt.Println(err)
		}
		c.runPods(ctx) // the kubelet
	}
	pod, err := c.CoreV1().Pods("shop").Get(ctx, "db-0", metav1.GetOptions{})
	fmt.Println(pod.UID, pod.Spec.Containers[0].Image, err)
	set, err = c.AppsV1().ReplicaSets("shop").Get(ctx, "db-1", metav1.GetOptions{})
	fmt.Println(set.Name, set.Spec.Template.Spec.Containers[0].Image, err)
	// Output:
	// uid-0 app:2 <nil>
	// db-1 app:2 <nil>
}

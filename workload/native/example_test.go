package native_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
)

// database is a resource of an operator, which creates a StatefulSet with updateStrategy OnDelete.
type database struct {
	metav1.ObjectMeta

	repeats workload.Repeats
}

// rollOut updates the pods of the StatefulSet. Call it when the set or one of its pods changes, and after the time that
// it returns.
func (d *database) rollOut(ctx context.Context, c kubernetes.Interface) (time.Duration, error) {
	set, err := c.AppsV1().StatefulSets(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	of := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector)}
	pods, err := c.CoreV1().Pods(d.Namespace).List(ctx, of)
	revisions, failed := c.AppsV1().ControllerRevisions(d.Namespace).List(ctx, of)
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	in, notes := native.StatefulSet(set, native.Observed{
		Now:       time.Now(),
		Pods:      revision.ControlledBy[corev1.Pod](set, pods.Items),
		Revisions: revision.ControlledBy[appsv1.ControllerRevision](set, revisions.Items),
		Repeats:   d.repeats,
	}, native.Rollout{PodUpdatePolicy: native.InPlaceIfPossible})
	pass, err := workload.Plan(in)
	if err != nil {
		return 0, err
	}
	err = clientgo.Run(ctx, c, pass)
	d.repeats = pass.Repeats()
	d.report(pass.Counts(), append(notes, pass.Notes()...))
	return pass.RequeueAfter(), err
}

// report writes the status of the database.
func (*database) report(counts workload.Counts, notes []note.Note) {
	fmt.Println(counts.UpdatedReady, "of", counts.Pods)
	for _, n := range notes {
		fmt.Println(n.Code)
	}
}

// Example rolls out the image of a StatefulSet of one pod.
func Example() {
	ctx, c := context.Background(), newCluster("app:1")
	d := &database{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	c.setImage(ctx, "app:2")
	for range 3 {
		if _, err := d.rollOut(ctx, c); err != nil {
			fmt.Println(err)
		}
		c.runPods(ctx) // the kubelet
	}
	pod, err := c.CoreV1().Pods("shop").Get(ctx, "db-0", metav1.GetOptions{})
	fmt.Println(pod.UID, pod.Spec.Containers[0].Image, pod.Labels[appsv1.StatefulSetRevisionLabel], err)
	// Output:
	// 0 of 1
	// InPlaceNoReadinessGate
	// 1 of 1
	// 1 of 1
	// uid-0 app:2 db-2 <nil>
}

// Command groups is a whole operator of groups of pods. Each group has a leader and workers with templates of their own. The
// pods of a group are updated together, in place where possible, and leave traffic together.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client, ctx := kubernetes.NewForConfigOrDie(config), context.Background()
	wait.Until(func() { // a real operator watches
		if err := reconcileAll(ctx, client); err != nil {
			log.Println(err)
		}
	}, time.Second, nil)
}

// reconcileAll makes a pass over each team.
func reconcileAll(ctx context.Context, client *kubernetes.Clientset) error {
	raw, err := client.RESTClient().Get().AbsPath("/apis/example.com/v1/teams").DoRaw(ctx)
	if err != nil {
		return err
	}
	var list struct{ Items []team }
	err = json.Unmarshal(raw, &list)
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			err = errors.Join(err, reconcile(ctx, client, &list.Items[i]))
		}
	}
	return err
}

// reconcile makes a pass over a team. Everything that must be remembered is in the objects: a process that dies at any write
// leaves a team that the next pass continues.
func reconcile(ctx context.Context, client *kubernetes.Clientset, t *team) error {
	selector := metav1.ListOptions{LabelSelector: teamLabel + "=" + t.Name}
	pods, failed := client.CoreV1().Pods(t.Namespace).List(ctx, selector)
	revisions, err := client.AppsV1().ControllerRevisions(t.Namespace).List(ctx, selector)
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	o := observe(t, pods.Items, revisions.Items, time.Now())
	r, err := o.resolve()
	if err != nil {
		return err
	}
	if err := store(ctx, client, r.Verdict, r.Update); err != nil {
		return err
	}
	in, err := o.input(r)
	if err != nil {
		return err
	}
	pass, err := workload.Plan(in)
	if err != nil {
		return err
	}
	err = clientgo.Run(ctx, client.CoreV1().Pods(t.Namespace), pass)
	if headline, ok := note.Headline(pass.Notes()); ok {
		log.Println(t.Name, headline.Code, headline.Object, headline.Text)
	}
	for _, old := range o.expired(r) {
		err = errors.Join(err, client.AppsV1().ControllerRevisions(t.Namespace).Delete(ctx, old.Name, metav1.DeleteOptions{}))
	}
	if current, promoted := o.current(r, pass.Counts()); promoted {
		path := "/apis/example.com/v1/namespaces/" + t.Namespace + "/teams/" + t.Name + "/status"
		patch := fmt.Appendf(nil, `{"status":{"currentRevision":%q}}`, current)
		err = errors.Join(err, client.RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error())
	}
	return err
}

// store makes the wanted templates the newest revision.
func store(ctx context.Context, client *kubernetes.Clientset, verdict revision.Verdict, r *appsv1.ControllerRevision) (err error) {
	revisions := client.AppsV1().ControllerRevisions(r.Namespace)
	switch verdict {
	case revision.Create:
		_, err = revisions.Create(ctx, r, metav1.CreateOptions{})
	case revision.Bump:
		_, err = revisions.Update(ctx, r, metav1.UpdateOptions{})
	}
	return err
}

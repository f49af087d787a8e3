// Command groups is a whole operator of groups of pods. Each group has a leader and workers with templates of their
// own. The pods of a group are updated together, in place where possible, and leave traffic together.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	o, ctx := operator{Clientset: kubernetes.NewForConfigOrDie(config)}, context.Background()
	wait.Until(func() { // a real operator watches
		log.Println("teams:", o.reconcileAll(ctx))
	}, time.Second, nil)
}

// operator is a process. Everything that must be remembered is in the objects: a process that dies at any write leaves
// a team that the next process continues.
type operator struct {
	*kubernetes.Clientset

	repeats map[types.UID]workload.Repeats // so that writes that another writer reverts are not repeated each second
}

// reconcileAll makes a pass over each team.
func (o *operator) reconcileAll(ctx context.Context) error {
	raw, err := o.RESTClient().Get().AbsPath("/apis/example.com/v1/teams").DoRaw(ctx)
	if err != nil {
		return err
	}
	var list struct{ Items []team }
	err = json.Unmarshal(raw, &list)
	before := o.repeats
	o.repeats = map[types.UID]workload.Repeats{}
	for i := range list.Items {
		o.repeats[list.Items[i].UID] = before[list.Items[i].UID]
		if list.Items[i].DeletionTimestamp == nil {
			err = errors.Join(err, o.reconcile(ctx, &list.Items[i]))
		}
	}
	return err
}

// reconcile makes a pass over a team.
func (o *operator) reconcile(ctx context.Context, t *team) error {
	pods, revisions, err := clientgo.Observe(ctx, o, t, teamLabel+"="+t.Name)
	in, invalid := t.input(pods, revisions)
	if err := errors.Join(err, invalid); err != nil {
		return err
	}
	in.Scale.Now, in.Repeats = time.Now(), o.repeats[t.UID]
	pass, err := workload.Plan(in)
	if err != nil {
		return err
	}
	err = clientgo.Run(ctx, o, pass)
	o.repeats[t.UID] = pass.Repeats()
	if headline, ok := note.Headline(pass.Notes()); ok {
		log.Println(t.Name, headline.Code, headline.Object, headline.Text)
	}
	if current, promoted := pass.Promote(t.Status.CurrentRevision); promoted {
		path := "/apis/example.com/v1/namespaces/" + t.Namespace + "/teams/" + t.Name + "/status"
		patch := fmt.Appendf(nil, `{"status":{"currentRevision":%q}}`, current)
		err = errors.Join(err, o.RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error())
	}
	return err
}

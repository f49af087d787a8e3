// Command embed is a whole operator of a resource of its own: it keeps a number of bare pods, and updates them in
// place.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
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
			log.Println(f.Name, reconcile(ctx, client, &f))
		}
	}, time.Second, nil)
}

// reconcile brings the pods of a fleet a step closer to what the fleet asks for.
func reconcile(ctx context.Context, client kubernetes.Interface, f *fleet) error {
	pods, revisions, err := clientgo.Observe(ctx, client, f, "fleet="+f.Name)
	data, invalid := revision.Encode(&f.Spec.Template)
	if err := errors.Join(err, invalid); err != nil {
		return err
	}
	in := workload.Input{
		Owner:     workload.OwnedBy(f, kind(), map[string]string{"fleet": f.Name}),
		Scale:     scale.Input{Now: time.Now(), Limits: f.Spec.Limits},
		Instances: workload.Pods(pods),
		Strategy:  workload.InPlaceIfPossible,
	}
	history := workload.History{Data: data, Stored: revisions, Limit: 10}
	if err := in.SetHistory(history); err != nil {
		return err
	}
	in.Current = in.Update // no pod is created at an older revision; examples/groups has a partition
	pass, err := workload.Plan(in)
	if err != nil {
		return err
	}
	err = clientgo.Run(ctx, client, pass)
	log.Println(f.Name, pass.Notes())
	return err
}

package driver_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/write"
)

// A pass asks whether a ConfigMap is in use, and deletes the ConfigMap where it is not. The decision is made on values;
// the sender is the only part that would need a client.
func ExampleRun() {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old", UID: "1"}}
	question := []*write.Write{{Verb: write.Get, Object: config}}
	pass := driver.Stage(question, func(w *write.Write, now write.Object, err error) ([]*write.Write, error) {
		if w.Verb == write.Get && err == nil && now.GetLabels()["in-use"] == "" {
			return write.Deletions([]write.Object{now}), nil
		}
		return nil, err
	})
	send := func(_ context.Context, w *write.Write) (write.Object, error) { // or runtimeclient.Sender, clientgo.Sender
		fmt.Println(w)
		return w.Object, nil
	}
	fmt.Println(driver.Run(context.Background(), pass, driver.Options[*write.Write]{Send: send}))
	// Output:
	// get configmap old
	// delete configmap old
	// <nil>
}

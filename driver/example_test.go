package driver_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/write"
)

// A pass may ask before it writes: this one deletes a ConfigMap that is not in use. It decides on values; the sender is
// the only part that would need a client.
type unused struct {
	config *corev1.ConfigMap
	asked  bool
	err    error
}

func (u *unused) Next() []*write.Write {
	if u.asked {
		return nil
	}
	u.asked = true
	return []*write.Write{{Verb: write.Get, Object: u.config}}
}

func (u *unused) Answer(_ time.Time, w *write.Write, now write.Object, err error) []*write.Write {
	if w.Verb == write.Get && err == nil && now.GetLabels()["in-use"] == "" {
		return write.Deletions([]write.Object{now})
	}
	u.err = errors.Join(u.err, err)
	return nil
}

func (u *unused) Err() error { return u.err }

func ExampleRun() {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old", UID: "1"}}
	send := func(_ context.Context, w *write.Write) (write.Object, error) { // or runtimeclient.Sender, clientgo.Sender
		fmt.Println(w)
		return w.Object, nil
	}
	fmt.Println(driver.Run(context.Background(), &unused{config: config}, driver.Options[*write.Write]{Send: send}))
	// Output:
	// get configmap old
	// delete configmap old
	// <nil>
}

package driver_test

import (
	"context"
	"errors"
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

// Writes that follow each other: the second one is not sent where the first one fails.
func ExampleSequence() {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}}
	step := func(w *write.Write) driver.Step[*write.Write] {
		return driver.Step[*write.Write]{Required: true, Plan: func() (driver.Pass[*write.Write], error) {
			return driver.Writes(w), nil
		}}
	}
	pass := driver.Sequence(
		step(&write.Write{Verb: write.Create, Object: config}), step(&write.Write{Verb: write.Delete, Object: config}),
	)
	send := func(_ context.Context, w *write.Write) (write.Object, error) {
		fmt.Println(w)
		return nil, errors.New("the quota is used up")
	}
	fmt.Println(driver.Run(context.Background(), pass, driver.Options[*write.Write]{Send: send}))
	// Output:
	// create configmap new
	// create configmap new: the quota is used up
}

// Deletions that nothing follows. One that is refused stops no other one.
func ExampleWrites() {
	var old []*corev1.ConfigMap
	for _, name := range []string{"a", "b"} {
		old = append(old, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1"}})
	}
	send := func(_ context.Context, w *write.Write) (write.Object, error) {
		fmt.Println(w)
		return nil, nil
	}
	pass := driver.Writes(write.Deletions(old)...)
	fmt.Println(driver.Run(context.Background(), pass, driver.Options[*write.Write]{Send: send}))
	// Output:
	// delete configmap a
	// delete configmap b
	// <nil>
}

package podbench_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// A process dies once, before or after the write that it dies at, makes no write after that, and another one goes on.
func TestProcess(t *testing.T) {
	for at, made := range map[int]int{0: 3, 1: 1, 2: 1, 3: 3} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			m := objects.NewModel(t, &corev1.PodList{}, func(*runtime.Scheme) error { return nil })
			started := 0
			p := &podbench.Process{Server: m.Server, Start: func(c client.WithWatch) reconcile.Reconciler {
				started++
				return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
					var errs []error
					for n := range 3 {
						pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("p%d-%d", started, n)}}
						errs = append(errs, c.Create(ctx, pod))
					}
					return reconcile.Result{}, errors.Join(errs...)
				})
			}}
			p.DieAt(at)
			for k, want := range []int{made, made + 3} {
				if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil && at > 0 && k > 0 {
					t.Fatal(err)
				}
				if at == 0 {
					p.Restart()
				}
				if got := len(m.Pods()); got != want {
					t.Errorf("request %d: %d writes made, want %d", k, got, want)
				}
			}
			if started != 2 {
				t.Errorf("%d processes", started)
			}
		})
	}
}

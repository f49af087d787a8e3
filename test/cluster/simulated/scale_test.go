//go:build simulated

package simulated_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/kruisekit/kruisekit/test/cluster/simulated"
)

const (
	deployments = 10
	replicas    = 1000
)

// BenchmarkTenThousandPods measures what a machine makes of 1,000 nodes and 10,000 pods: how long the pods of 10
// Deployments take until all are ready, how long a changed image takes in all of them, and how long their end takes.
//
//	go test -tags simulated -run '^$' -bench TenThousandPods -benchtime 1x -timeout 30m ./test/cluster/simulated
func BenchmarkTenThousandPods(b *testing.B) {
	w := newWorld(b, simulated.Config{Nodes: 1000, MaxGrace: time.Second})
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	pods := w.follow(ctx, b)
	for b.Loop() {
		start, cpu := time.Now(), w.cpu(b)
		lap := func(what string) {
			now, used := time.Now(), w.cpu(b)
			b.ReportMetric(now.Sub(start).Seconds(), what+"-s")
			b.ReportMetric((used - cpu).Seconds(), what+"-kwok-cpu-s")
			start, cpu = now, used
		}
		for i := range deployments {
			if _, err := w.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx,
				deployment(i), metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		pods.await(ctx, b, deployments*replicas, ready)
		lap("ready")

		w.updateAll(ctx, b, pods.names())
		pods.await(ctx, b, deployments*replicas, func(p *corev1.Pod) bool {
			return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1
		})
		lap("image")

		if err := w.AppsV1().Deployments(metav1.NamespaceDefault).DeleteCollection(ctx,
			metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		pods.await(ctx, b, 0, func(*corev1.Pod) bool { return true })
		lap("gone")
	}
	b.ReportMetric(w.took.Seconds(), "nodes-s")
	b.ReportMetric(0, "ns/op") // The laps say more.
}

func deployment(i int) *appsv1.Deployment {
	labels, count := map[string]string{"app": strconv.Itoa(i)}, int32(replicas)
	pod := podOf("")
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("scale-%d", i)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: pod.Spec.Containers},
			},
		},
	}
}

// updateAll changes the image in each pod itself, as in-place updates do.
func (w *world) updateAll(ctx context.Context, t testing.TB, names []string) {
	t.Helper()
	var group sync.WaitGroup
	work := make(chan string)
	for range 16 {
		group.Add(1)
		go func() {
			defer group.Done()

			for name := range work {
				_, err := w.CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, name, types.StrategicMergePatchType,
					[]byte(`{"spec":{"containers":[{"name":"main","image":"nginx:2"}]}}`), metav1.PatchOptions{})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for _, name := range names {
		work <- name
	}
	close(work)
	group.Wait()
}

// cpu is the CPU time that KWOK has taken so far, on Linux.
func (w *world) cpu(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.nodes.Pid()))
	if err != nil {
		return 0
	}
	field := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int
	for _, one := range field[11:13] { // in user and in system mode, in hundredths of a second
		n, err := strconv.Atoi(one)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// followed are the pods as the API has them.
type followed struct {
	store   cache.Store
	changed chan struct{}
}

func (w *world) follow(ctx context.Context, t testing.TB) followed {
	t.Helper()
	factory := informers.NewSharedInformerFactory(w, 0)
	informer := factory.Core().V1().Pods().Informer()
	f := followed{store: informer.GetStore(), changed: make(chan struct{}, 1)}
	tell := func() {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f
}

func (f followed) names() []string {
	var names []string
	for _, one := range f.store.List() {
		if pod, ok := one.(*corev1.Pod); ok {
			names = append(names, pod.Name)
		}
	}
	return names
}

// await returns when there are so many pods and all are as asked. It looks once in a while, lest it be what is
// measured.
func (f followed) await(ctx context.Context, t testing.TB, count int, as func(*corev1.Pod) bool) {
	t.Helper()
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	for {
		all, good := f.store.List(), 0
		for _, one := range all {
			if pod, ok := one.(*corev1.Pod); ok && as(pod) {
				good++
			}
		}
		if len(all) == count && good == count {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d pods, %d of them as asked: %v", len(all), count, good, ctx.Err())
		case <-f.changed:
		}
		<-pause.C
	}
}

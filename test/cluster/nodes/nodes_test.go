//go:build nightly && linux

package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
	"github.com/kruisekit/kruisekit/test/cluster/image"
	"github.com/kruisekit/kruisekit/test/cluster/internal/process"
	"github.com/kruisekit/kruisekit/test/cluster/nodes"
	"github.com/kruisekit/kruisekit/test/cluster/plane"
)

const timeout = 3 * time.Minute

// alone returns the configuration of the machine's cluster, which must not be up: these tests start and destroy it.
func alone(t *testing.T) nodes.Config {
	t.Helper()
	required := os.Getenv("KRUISEKIT_REQUIRE_CLUSTER") == "1"
	cache, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	config, err := nodes.OfMachine(cache)
	if err == nil {
		err = config.Check()
	}
	if (errors.Is(err, nodes.ErrUnavailable) || errors.Is(err, binaries.ErrMissing)) && !required {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(config.Dir); err == nil {
		if required {
			t.Fatal("a cluster is up, or its remains are there: `cluster down` first")
		}
		t.Skip("a cluster is up, and this test would destroy it")
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := config.Down(ctx); err != nil {
			t.Error(err)
		}
	})
	return config
}

func up(t *testing.T, config nodes.Config, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	begin := time.Now()
	started, err := config.Up(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if started != want {
		t.Fatalf("started %t, want %t", started, want)
	}
	t.Logf("up after %s", time.Since(begin).Round(time.Millisecond))
}

func down(t *testing.T, config nodes.Config) {
	t.Helper()
	begin := time.Now()
	if err := config.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("down after %s", time.Since(begin).Round(time.Millisecond))
}

func compare(t *testing.T, config nodes.Config, before snapshot) {
	t.Helper()
	if diff := cmp.Diff(before, take(t, config)); diff != "" {
		t.Errorf("what is left (+) or lost (-):\n%s", diff)
	}
	for kind, entries := range before {
		t.Logf("%s: %d compared", kind, len(entries))
	}
}

// work makes the cluster use all it can leave behind: containers, networks, images, volumes.
func work(t *testing.T, config nodes.Config) {
	t.Helper()
	pusher, err := config.Pusher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := pusher.Push(t.Context(), image.Spec{Name: "work:1"})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	claims, pods := clients.CoreV1().PersistentVolumeClaims("default"), clients.CoreV1().Pods("default")
	_, err = claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "work"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Mi"),
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for node := 1; node <= nodes.Count; node++ {
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "on-" + nodes.Name(node)},
			Spec: corev1.PodSpec{
				NodeName: nodes.Name(node),
				Containers: []corev1.Container{{
					Name: "work", Image: pushed.Name, VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
					// Written late, it would tell of containers that outlive the cluster.
					Command: []string{"sh", "-c", "while :; do date >/data/$HOSTNAME; sleep 1; done"},
				}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "work"},
				}}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err = process.Poll(ctx, func(ctx context.Context) error {
		running, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err == nil && len(running.Items) < nodes.Count {
			err = fmt.Errorf("%d pods run", len(running.Items))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDownLeavesNothing(t *testing.T) {
	config := alone(t)
	before := take(t, config)
	up(t, config, true)
	up(t, config, false)
	work(t, config)
	down(t, config)
	compare(t, config, before)
	down(t, config) // of nothing is no failure
}

// kill kills programs of the cluster that are recorded, and waits until they have ended.
func kill(t *testing.T, config nodes.Config, selected func(name string) bool) {
	t.Helper()
	var killed []process.Record
	for _, dir := range []string{filepath.Join(config.Dir, "run"), plane.RecordDir(filepath.Join(config.Dir, "plane"))} {
		records, err := process.Records(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if selected(r.Name) {
				if err := r.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				killed = append(killed, r)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := process.Poll(ctx, func(context.Context) error { return allEnded(killed) }); err != nil {
		t.Fatal(err)
	}
}

func allEnded(records []process.Record) error {
	for _, r := range records {
		if r.Alive() {
			return fmt.Errorf("%s runs", r.Name)
		}
	}
	return nil
}

func TestUpOvercomesWhatWasKilled(t *testing.T) {
	tests := map[string]struct {
		destroy func(t *testing.T, config nodes.Config)
	}{
		"everything": {func(t *testing.T, config nodes.Config) {
			kill(t, config, func(string) bool { return true })
		}},
		"nothing, but the state is lost": {func(t *testing.T, config nodes.Config) {
			if err := os.RemoveAll(filepath.Join(config.Dir, "run")); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(config.Dir, "plane", "run")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := alone(t)
			before := take(t, config)
			up(t, config, true)
			work(t, config)
			test.destroy(t, config)
			up(t, config, true)
			work(t, config)
			down(t, config)
			compare(t, config, before)
		})
	}
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, 2 * time.Second, 5 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			config := alone(t)
			before := take(t, config)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			if _, err := config.Up(ctx); err == nil {
				t.Skip("it was up before it could be interrupted")
			}
			compare(t, config, before)
		})
	}
}
